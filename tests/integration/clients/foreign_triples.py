"""A foreign store of triples: TrustGraph's own bases of stores and queries, unmodified, over a list in memory.

The released stores need Cassandra, Neo4j, Memgraph or FalkorDB; what they have in common with the broker is in these
bases. Writer and query are two processors of one process, as they share the list.
"""

import asyncio

from trustgraph.base import TriplesQueryService, TriplesStoreService

HELD = []


class Writer(TriplesStoreService):
    async def store_triples(self, workspace, message):
        for triple in message.triples:
            HELD.append((workspace, message.metadata.collection, triple))


class Query(TriplesQueryService):
    async def query_triples(self, workspace, request):
        found = []
        for of, collection, triple in HELD:
            if of != workspace or collection != request.collection:
                continue
            if request.g != "*" and (triple.g or "") != (request.g or ""):
                continue
            asked = ((request.s, triple.s), (request.p, triple.p), (request.o, triple.o))
            if all(pattern is None or same(pattern, term) for pattern, term in asked) and triple not in found:
                found.append(triple)
        return found[: request.limit] if request.limit else found


def same(a, b):
    return (a.type, a.iri, a.value) == (b.type, b.iri, b.value)


class Store(Writer):
    """Both in one process, by the released way to launch one."""

    @classmethod
    async def launch_async(cls, args):
        async with asyncio.TaskGroup() as group:
            for kind, id in ((Writer, "triples-write"), (Query, "triples-query")):
                processor = kind(**args | {"id": id, "taskgroup": group})
                await processor.start()
                group.create_task(processor.run())


Store.launch("triples", __doc__)

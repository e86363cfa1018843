"""TrustGraph's own librarian, unmodified, over stand-ins for the Cassandra and the object store that it needs.

Only the two stores are replaced, by what keeps in memory; the service, its queues and its operations are the released ones.
Prints a line `kept ID` for each document that is added.
"""

import sys
import types


class Blobs:
    def __init__(self, *_args, **_options):
        self.all = {}

    async def add(self, object_id, blob, _kind):
        self.all[object_id] = blob

    async def remove(self, object_id):
        del self.all[object_id]

    async def get(self, object_id):
        return self.all[object_id]

    async def get_range(self, object_id, offset, length):
        return self.all[object_id][offset : offset + length]

    async def get_size(self, object_id):
        return len(self.all[object_id])


class Table:
    def __init__(self, *_args, **_options):
        self.all = {}

    async def document_exists(self, workspace, id):
        return (workspace, id) in self.all

    async def add_document(self, workspace, document, object_id):
        # The released table reads these, and fails where a sender leaves one out.
        row = (int(document.time * 1000), [triple.s for triple in document.metadata], list(document.tags))
        self.all[workspace, document.id] = (document, object_id, row)
        print("kept", document.id, flush=True)

    async def get_document(self, workspace, id):
        if (workspace, id) not in self.all:
            raise RuntimeError("No such document row?")
        return self.all[workspace, id][0]

    async def get_document_object_id(self, workspace, id):
        if (workspace, id) not in self.all:
            raise RuntimeError("No such document row?")
        return self.all[workspace, id][1]

    async def list_documents(self, workspace):
        return [document for (of, _), (document, _, _) in self.all.items() if of == workspace]

    async def list_children(self, parent):
        return [document for document, _, _ in self.all.values() if document.parent_id == parent]


def stand_in(module, **classes):
    """The module of a store, whose database driver need not be installed."""
    made = types.ModuleType(module)
    vars(made).update(classes)
    sys.modules[module] = made


stand_in("trustgraph.librarian.blob_store", BlobStore=Blobs)
stand_in("trustgraph.tables.library", LibraryTableStore=Table)

from trustgraph.librarian import run  # noqa: E402: only now are the stores replaced

run()

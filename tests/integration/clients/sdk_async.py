"""The asynchronous half of the official SDK, for `sdk_whole.py`, after the other half has filled the system."""

import asyncio

from sdk_watch import check, fails_too, same
from trustgraph.api import Api
from trustgraph.api.types import Literal, Triple, Uri

BUILT = "Who built the Harrowgate lantern?"
BUILT_ANSWER = "The Harrowgate lantern was built by Ottoline Frask in 1887 [1]."
# The first bytes of a picture: the reader that comes with the system says that it reads none.
PNG = b"\x89PNG\r\n\x1a\n"
FRASK = "Who is Ottoline Frask?"
# What becomes of a refusal over HTTP that is a text: the library looks into every error as an object.
NOT_SAID = "TypeError: string indices must be integers"
NOT_SERVED = "This kind not supported by flow"
PATIENCE = 60


async def asynchronous(url, key):
    api = Api(url, token=key)
    await over_http(api)
    await over_a_socket(api)
    await in_bulk(api)
    metrics = api.async_metrics()
    check("async metrics.get", "tg_gateway_requests_total{" in await metrics.get(), "")
    await metrics.aclose()
    await api.aclose()


async def over_http(api):
    flows = api.async_flow()
    same("async list", await flows.list(), ["default"])
    same("async get", (await flows.get("default"))["blueprint-name"], "everything")
    same("async request", (await flows.request("flow", {"operation": "list-flows"}))["flow-ids"], ["default"])
    api.flow().start("structured", "third", "to be stopped")
    await flows.stop("third")
    same("async stop", await flows.list(), ["default"])
    # These use operations and names that are no more.
    for name, ask in {
        "async start": flows.start("structured", "fourth", "x"),
        "async list_classes": flows.list_classes(),
        "async get_class": flows.get_class("everything"),
        "async put_class": flows.put_class("mine", {}),
        "async delete_class": flows.delete_class("mine"),
    }.items():
        await fails_too(name, "Exception: ", ask)

    flow = flows.id("default")
    same("async text_completion", (await flow.text_completion("Be brief.", "Say nonce-a-1")).text, "Say nonce-a-1")
    same("async document_rag", await flow.document_rag(BUILT, "docs"), BUILT_ANSWER)
    check("async graph_rag", "glassblower from Pellworth [1]" in await flow.graph_rag(FRASK, "docs"), "")
    answer = await flow.agent("Which Sunday may visitors light the Harrowgate lantern?", collection="docs")
    check("async agent", "first Sunday of May [1]" in str(answer), answer)
    same("async embeddings", len((await flow.embeddings(["a", "b"]))["vectors"]), 2)
    same("async request", len((await flow.request("embeddings", {"texts": ["a"]}))["vectors"]), 1)
    found = await flow.graph_embeddings_query("a green bottle", "docs", 1)
    same("async graph_embeddings_query", found["entities"][0]["entity"]["i"], "urn:e:bottle")
    found = await flow.row_embeddings_query("maker 7", "lamps", "rows", limit=1)
    same("async row_embeddings_query", found["matches"][0]["text"], "maker 7")
    ranked = await flow.rerank([{"query_id": "q", "query_text": "x"}], [{"document_id": "a", "document_text": "x"}])
    same("async rerank", ranked["results"][0]["document_id"], "a")
    found = await flow.triples_query(s="urn:e:7", p="urn:p:n", collection="docs")
    same("async triples_query", found["response"][0]["o"], {"t": "l", "v": "7", "ln": "en"})
    found = await flow.sparql_query("ASK { <urn:e:7> <urn:p:n> ?o }", "docs")
    same("async sparql_query", found["ask-result"], True)
    found = await flow.rows_query("{ lamps(limit: 3) { id } }", "rows")
    same("async rows_query", len(found["data"]["lamps"]), 3)
    for name, ask in {
        "async cloze": flow.cloze("m", "q"),
        "async cloze_list_models": flow.cloze_list_models(),
        "async decision_scoring": flow.decision_scoring({}, {"a": "b"}),
        "async field_extraction": flow.field_extraction({}, {"a": "b"}),
    }.items():
        await fails_too(name, NOT_SAID, ask)
    await fails_too("async image_to_text", "reads no pictures", flow.image_to_text(PNG, "image/png"))
    await flows.aclose()


async def joined(chunks):
    return "".join([chunk if isinstance(chunk, str) else chunk.content async for chunk in chunks])


async def over_a_socket(api):
    client = api.async_socket()
    await client.connect()
    flow = client.flow("default")
    same("async socket text_completion", (await flow.text_completion("Be brief.", "Say nonce-b-1")).text, "Say nonce-b-1")
    same("async socket text_completion", await joined(await flow.text_completion("Be brief.", "Say nonce-b-2", streaming=True)), "Say nonce-b-2")
    # It reads the answer of a prompt under a name that it does not have.
    same("async socket prompt", await flow.prompt("mine", {"x": "nonce-b-3"}), "")
    same("async socket prompt", await joined(await flow.prompt("mine", {"x": "nonce-b-4"}, streaming=True)), "Say nonce-b-4.")
    same("async socket document_rag", await flow.document_rag(BUILT, "docs"), BUILT_ANSWER)
    same("async socket document_rag", await joined(await flow.document_rag(BUILT, "docs", streaming=True)), BUILT_ANSWER)
    check("async socket graph_rag", "glassblower from Pellworth [1]" in await flow.graph_rag(FRASK, "docs"), "")
    check("async socket graph_rag", "glassblower from Pellworth [1]" in await joined(await flow.graph_rag(FRASK, "docs", streaming=True)), "")
    said = [chunk async for chunk in await flow.agent(FRASK, collection="docs", streaming=True)]
    check("async socket agent", "glassblower" in "".join(chunk.content for chunk in said), said)
    same("async socket embeddings", len((await flow.embeddings(["a", "b"]))["vectors"]), 2)
    found = await flow.graph_embeddings_query("a green bottle", "docs", 1)
    same("async socket graph_embeddings_query", found["entities"][0]["entity"]["i"], "urn:e:bottle")
    found = await flow.row_embeddings_query("maker 7", "lamps", "rows", limit=1)
    same("async socket row_embeddings_query", found["matches"][0]["text"], "maker 7")
    ranked = await flow.rerank([{"query_id": "q", "query_text": "x"}], [{"document_id": "a", "document_text": "x"}])
    same("async socket rerank", ranked["results"][0]["document_id"], "a")
    found = await flow.triples_query(s="urn:e:7", p="urn:p:n", collection="docs")
    same("async socket triples_query", found["response"][0]["o"], {"t": "l", "v": "7", "ln": "en"})
    same("async socket rows_query", len((await flow.rows_query("{ lamps(limit: 3) { id } }", "rows"))["data"]["lamps"]), 3)
    same("async socket mcp_tool", (await flow.mcp_tool("m1", {"say": "nonce-b-5"}))["text"], "heard nonce-b-5")
    for name, ask in {
        "async socket cloze": flow.cloze("m", "q"),
        "async socket cloze_list_models": flow.cloze_list_models(),
        "async socket decision_scoring": flow.decision_scoring({}, {"a": "b"}),
        "async socket field_extraction": flow.field_extraction({}, {"a": "b"}),
    }.items():
        await fails_too(name, NOT_SERVED, ask)
    await fails_too("async socket image_to_text", "reads no pictures", flow.image_to_text(PNG, "image/png"))
    await client.aclose()


async def every(items):
    for item in items:
        yield item


async def first(frames, holds):
    async for frame in frames:
        if holds(frame):
            return frame


async def tapped(name, frames, imports, holds):
    """What passes while somebody listens: an export shows what is imported after it was opened."""
    wanted = asyncio.ensure_future(first(frames, holds))
    for _ in range(PATIENCE * 2):
        await imports()
        done, _ = await asyncio.wait([wanted], timeout=0.5)
        if done:
            break
    check(name, wanted.done() and wanted.result(), "nothing came")
    wanted.cancel()
    return wanted.result() if wanted.done() and not wanted.cancelled() else None


async def in_bulk(api):
    bulk = api.async_bulk()
    about = {"id": "urn:tap", "metadata": [], "collection": "taps"}
    iri = {"t": "i", "i": "urn:e:tap"}
    graph = {"metadata": about, "entities": [{"entity": iri, "vector": [1.0, 2.0]}]}
    chunk = {"metadata": about, "chunks": [{"chunk_id": "urn:chunk:tap", "vector": [1.0, 2.0]}]}
    context = {"metadata": about, "entities": [{"entity": iri, "context": "a tap"}]}
    triple = Triple(Uri("urn:e:tap"), Uri("urn:p:tap"), Literal("water"))
    mine = lambda frame: frame.get("metadata", {}).get("id") == "urn:tap"  # noqa: E731
    frame = await tapped("async export_graph_embeddings", bulk.export_graph_embeddings("default"), lambda: bulk.import_graph_embeddings("default", every([graph])), mine)
    same("async import_graph_embeddings", frame["entities"][0]["vector"], [1.0, 2.0])
    frame = await tapped("async export_document_embeddings", bulk.export_document_embeddings("default"), lambda: bulk.import_document_embeddings("default", every([chunk])), mine)
    same("async import_document_embeddings", frame["chunks"][0]["chunk_id"], "urn:chunk:tap")
    frame = await tapped("async export_entity_contexts", bulk.export_entity_contexts("default"), lambda: bulk.import_entity_contexts("default", every([context])), mine)
    same("async import_entity_contexts", frame["entities"][0]["context"], "a tap")
    # It reads one triple where there is a record of them, and finds none in it; what it sends alone is taken.
    frame = await tapped("async export_triples", bulk.export_triples("default"), lambda: bulk.import_triples("default", every([triple])), lambda frame: True)
    same("async export_triples", (frame.s, frame.p, frame.o), ("", "", ""))
    flow = api.flow().id("default")
    for _ in range(PATIENCE * 10):
        found = await asyncio.to_thread(lambda: flow.triples_query(s="urn:e:tap"))
        if found:
            break
        await asyncio.sleep(0.1)
    same("async import_triples", [str(one.o) for one in found], ["water"])
    row = {"metadata": {**about, "collection": "rows"}, "schema_name": "lamps", "values": {"id": "501", "maker": "late", "height": "2"}}
    await bulk.import_rows("default", every([row]))
    for _ in range(PATIENCE * 10):
        found = await asyncio.to_thread(lambda: flow.rows_query('{ lamps(where: {id: {eq: 501}}) { maker } }', "rows"))
        if found["data"]["lamps"]:
            break
        await asyncio.sleep(0.1)
    same("async import_rows", found, {"data": {"lamps": [{"maker": "late"}]}})
    await bulk.aclose()

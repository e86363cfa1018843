"""Uses every public method of the official SDK, unmodified, that is not broken by itself, and looks at what it gives.

Arguments: URL of the gateway, an administrator's key, URL of an MCP server whose tool repeats what it is told. Prints
what was wrong, and which public methods were neither used nor excused.
"""

import asyncio
import pathlib
import sys
import tempfile
import threading
import traceback

import sdk_watch
from sdk_async import PNG, asynchronous
from sdk_watch import check, fails, same, until
from trustgraph.api import Api
from trustgraph.api.explainability import ExplainabilityClient
from trustgraph.api.types import ConfigKey, ConfigValue, Literal, Triple, Uri

# By class and method: why it is not used. What is broken by itself is used, and fails as it does.
EXCUSED = {}

TEXT = (
    "The Harrowgate lantern is a lamp made of blue glass. The Harrowgate lantern was built by Ottoline Frask in 1887. "
    "Ottoline Frask was a glassblower from Pellworth. Visitors may light it on the first Sunday of May.\n"
)
SCHEMA = (
    '{"name": "lamps", "description": "Lamps", "fields": [{"name": "id", "type": "integer", "primary_key": true}, '
    '{"name": "maker", "type": "string", "indexed": true}, {"name": "height", "type": "float"}]}'
)
CSV = "id,maker,height\n1,Frask,12.5\n2,Bell,3\n"
BUILT = "Who built the Harrowgate lantern?"
BUILT_ANSWER = "The Harrowgate lantern was built by Ottoline Frask in 1887 [1]."
FRASK = "Who is Ottoline Frask?"
NOT_SERVED = "This kind not supported by flow"
# What becomes of these words over HTTP, where they are a text: the library looks into every error as an object.
NOT_SAID = "TypeError: string indices must be integers"


def configuration(api):
    config = api.config()
    config.put([ConfigValue("notes", "a", "one"), ConfigValue("notes", "b", "two")])
    same("config.get", [v.value for v in config.get([ConfigKey("notes", "a"), ConfigKey("notes", "none")])], ["one", None])
    same("config.list", sorted(config.list("notes")), ["a", "b"])
    same("config.get_values", sorted(v.value for v in config.get_values("notes")), ["one", "two"])
    # Services ask so; of a gateway nobody sees more than one workspace at a time.
    fails("config.get_values_all_workspaces", "bad-operation", lambda: config.get_values_all_workspaces("notes"))
    whole, version = config.all()
    check("config.all", whole["notes"] == {"a": "one", "b": "two"} and version > 0, whole.get("notes"))
    config.delete([ConfigKey("notes", "a")])
    same("config.delete", config.list("notes"), ["b"])
    same("config.request", config.request({"operation": "list", "type": "notes"})["directory"], ["b"])
    same("api.request", api.request("config", {"operation": "list", "type": "notes"})["directory"], ["b"])
    fails("api.request", "Status code 400", lambda: api.request("config", {"operation": "none"}))

    collections = api.collection()
    made = collections.update_collection("facts", name="Facts", description="true ones", tags=["tagged"])
    same("update_collection", (made.collection, made.name, made.description, made.tags), ("facts", "Facts", "true ones", ["tagged"]))
    same("list_collections", [c.name for c in collections.list_collections(tag_filter=["tagged"])], ["Facts"])
    same("collection.request", collections.request({"operation": "list-collections", "tag_filter": ["none"]})["collections"], [])
    same("delete_collection", collections.delete_collection("facts"), {})
    check("list_collections", "facts" not in [c.collection for c in collections.list_collections()], "facts")
    # What `Metrics.get` asks for is where the text of all of them is.
    check("metrics.get", "tg_gateway_requests_total{" in api.metrics().get(), api.metrics().get()[:200])


def flows(api):
    flow = api.flow()
    check("list_blueprints", {"everything", "structured", "ontology"} <= set(flow.list_blueprints()), flow.list_blueprints())
    flow.put_blueprint("mine", {"description": "my own", "class": {}, "flow": {}, "interfaces": {}})
    same("get_blueprint", flow.get_blueprint("mine")["description"], "my own")
    flow.delete_blueprint("mine")
    fails("get_blueprint", "flow-error: Blueprint does not exist", lambda: flow.get_blueprint("mine"))
    flow.start("structured", "second", "another", parameters={"llm-temperature": "0.5"})
    same("flow.list", sorted(flow.list()), ["default", "second"])
    second = flow.get("second")
    same("flow.get", (second["description"], second["parameters"]["llm-temperature"]), ("another", "0.5"))
    fails("flow.start", "already exists", lambda: flow.start("structured", "second", "again"))
    flow.stop("second")
    same("flow.stop", flow.list(), ["default"])
    same("flow.request", flow.request(request={"operation": "list-flows"})["flow-ids"], ["default"])


def library(api):
    library = api.library()
    said = [Triple(s=Uri("urn:doc:lantern"), p=Uri("urn:p:of"), o=Literal("Harrowgate"))]
    library.add_document(TEXT.encode(), "urn:doc:lantern", said, "Lantern", "about it", tags=["lamps"])
    document = library.get_document("urn:doc:lantern")
    same("get_document", (document.title, document.comments, document.tags, document.kind), ("Lantern", "about it", ["lamps"], "text/plain"))
    same("get_document", [(str(t.s), str(t.p), str(t.o)) for t in document.metadata], [("urn:doc:lantern", "urn:p:of", "Harrowgate")])
    fails("add_document", "already exists", lambda: library.add_document(b"x", "urn:doc:lantern", None, "", ""))
    same("get_document_content", library.get_document_content("urn:doc:lantern").decode(), TEXT)
    document.title = "The lantern"
    same("update_document", library.update_document("urn:doc:lantern", document).title, "The lantern")
    same("get_documents", [d.title for d in library.get_documents()], ["The lantern"])

    large, steps = b"0123456789" * 700_000, []
    library.add_document(large, "urn:doc:large", None, "Large", "", on_progress=lambda sent, of: steps.append((sent, of)))
    check("add_document in parts", len(steps) > 1 and steps[-1] == (7_000_000, 7_000_000), steps)
    with tempfile.TemporaryDirectory() as folder:
        path, seen = pathlib.Path(folder, "large"), []
        size = library.stream_document_to_file("urn:doc:large", path, on_progress=lambda got, of: seen.append((got, of)))
        check("stream_document_to_file", size == len(large) and path.read_bytes() == large, size)
        check("stream_document_to_file", seen[-1] == (7_000_000, 7_000_000) and len(seen) == 7, seen)
    library.add_child_document(b"a part", "urn:doc:part", "urn:doc:large", "Part", "")
    same("get_documents", sorted(d.id for d in library.get_documents(include_children=True)), ["urn:doc:lantern", "urn:doc:large", "urn:doc:part"])
    # It hands over what its own type does not take.
    fails("list_children", "Response not formatted correctly", lambda: library.list_children("urn:doc:large"))
    same("remove_document", library.remove_document("urn:doc:large"), {})
    uploads(library)
    same("library.request", len(library.request({"operation": "list-documents"})["document-metadatas"]), 2)
    library.remove_document("urn:doc:resumed")

    library.start_processing("p1", "urn:doc:lantern", collection="docs", tags=["first"])
    record = library.get_processings()[0]
    same("get_processings", (record.id, record.document_id, record.flow, record.collection, record.tags), ("p1", "urn:doc:lantern", "default", "docs", ["first"]))
    library.start_processing("p2", "urn:doc:lantern", collection="other")
    same("stop_processing", library.stop_processing("p2"), {})
    same("get_processings", [p.id for p in library.get_processings()], ["p1"])


def uploads(library):
    def begin(id, size):
        about = {"id": id, "kind": "text/plain", "title": id, "comments": "", "tags": []}
        ask = {"operation": "begin-upload", "document-metadata": about, "total-size": size, "chunk-size": size // 2}
        return library.request(ask)["upload-id"]

    half = 3 << 20
    document = b"x" * (2 * half)
    upload = begin("urn:doc:resumed", len(document))
    same("get_pending_uploads", [u["upload-id"] for u in library.get_pending_uploads()], [upload])
    status = library.get_upload_status(upload)
    same("get_upload_status", (status["upload-state"], status["missing-chunks"], status["total-chunks"]), ("in-progress", [0, 1], 2))
    library.resume_upload(upload, document)
    same("resume_upload", library.get_document_content("urn:doc:resumed"), document)
    upload = begin("urn:doc:aborted", len(document))
    library.abort_upload(upload)
    same("abort_upload", library.get_pending_uploads(), [])


def bulk(api):
    bulk = api.bulk()
    about = {"id": "urn:load", "metadata": [], "collection": "docs"}
    triples = [Triple(s=Uri(f"urn:e:{n}"), p=Uri("urn:p:n"), o=Literal(str(n), language="en" if n else None)) for n in range(250)]
    bulk.import_triples("default", iter(triples), about)
    bulk.import_triples("default", iter([Triple(Uri("urn:e:0"), Uri("urn:p:in"), Uri("urn:e:1"), g="urn:g:1")]), about)
    bulk.import_entity_contexts("default", iter([{"entity": {"t": "i", "i": "urn:e:7"}, "context": "the seventh thing"}]), about)
    vector = api.flow().id("default").embeddings(["a green bottle"])[0]
    bulk.import_graph_embeddings("default", iter([{"metadata": about, "entities": [{"entity": {"t": "i", "i": "urn:e:bottle"}, "vector": vector}]}]))
    bulk.import_document_embeddings("default", iter([{"metadata": about, "chunks": [{"chunk_id": "urn:chunk:bottle", "vector": vector}]}]))
    row = lambda values: {"metadata": {**about, "collection": "rows"}, "schema_name": "lamps", "values": values}  # noqa: E731
    bulk.import_rows("default", (row({"id": str(n), "maker": f"maker {n}", "height": "1.5"}) for n in range(1, 101)))
    listened(api, vector, about)
    bulk.close()


def listened(api, vector, about):
    """What passes while somebody listens: an export shows what is imported after it was opened."""
    tap = {**about, "id": "urn:tap:sync"}
    iri = {"t": "i", "i": "urn:e:tap"}
    kinds = {
        "graph_embeddings": {"metadata": tap, "entities": [{"entity": iri, "vector": vector}]},
        "document_embeddings": {"metadata": tap, "chunks": [{"chunk_id": "urn:chunk:tap", "vector": vector}]},
    }
    mine = lambda frame: frame.get("metadata", {}).get("id") == "urn:tap:sync"  # noqa: E731
    for kind, record in kinds.items():
        seen = heard(api, f"export_{kind}", mine, lambda bulk: getattr(bulk, f"import_{kind}")("default", iter([record])))
        check(f"export_{kind}", seen, "nothing came")
    context = {"entity": iri, "context": "a tap"}
    seen = heard(api, "export_entity_contexts", mine, lambda bulk: bulk.import_entity_contexts("default", iter([context]), tap))
    check("export_entity_contexts", seen, "nothing came")
    triple = Triple(Uri("urn:e:tap"), Uri("urn:p:tap"), Literal("water"))
    seen = heard(api, "export_triples", lambda _: True, lambda bulk: bulk.import_triples("default", iter([triple]), tap))
    # It reads one triple where there is a record of them, and finds none in it.
    check("export_triples", seen and (seen.s, seen.p, seen.o) == ("", "", ""), seen)


def heard(api, export, holds, imports):
    found = []

    def listen():
        frames = getattr(Api(api.url.removesuffix("api/v1/"), token=api.token).bulk(), export)("default")
        found.append(next(frame for frame in frames if holds(frame)))

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    for _ in range(sdk_watch.PATIENCE):
        imports(api.bulk())
        listener.join(0.5)
        if found:
            break
    return found[0] if found else None


def queries(api):
    flow = api.flow().id("default")
    until("import_triples", lambda: len(flow.triples_query(p="urn:p:n", collection="docs")), lambda count: count == 250)
    found = flow.triples_query(s="urn:e:0", g="urn:g:1", collection="docs")
    same("triples_query", [(str(t.s), str(t.p), str(t.o)) for t in found], [("urn:e:0", "urn:p:in", "urn:e:1")])
    ask = "SELECT ?o { <urn:e:7> <urn:p:n> ?o }"
    same("sparql_query", flow.sparql_query(ask, "docs")["bindings"], [{"values": [{"t": "l", "v": "7", "ln": "en"}]}])
    fails("sparql_query", "sparql-parse-error: error at 1:1: no query begins with nonsense", lambda: flow.sparql_query("nonsense", "docs"))
    same("embeddings", len(flow.embeddings(["a", "b"])), 2)
    # Both take a list for an object, before they ask for anything but vectors.
    for broken in (flow.graph_embeddings_query, flow.document_embeddings_query):
        fails(broken.__name__, "AttributeError: 'list' object has no attribute 'get'", lambda: broken("a", "docs"))
    fails("row_embeddings_query", "AttributeError", lambda: flow.row_embeddings_query("a", "lamps", "rows"))
    ranked = flow.rerank([{"query_id": "q", "query_text": "blue glass"}], [{"document_id": "a", "document_text": "green cheese"}, {"document_id": "b", "document_text": "a lamp of blue glass"}])
    same("rerank", ranked["results"][0]["document_id"], "b")
    count = "{ lamps(limit: 1000) { id maker } }"
    until("import_rows", lambda: len(flow.rows_query(count, "rows")["data"]["lamps"]), lambda rows: rows == 100)
    one = "query q($m: String) { lamps(where: {maker: {eq: $m}}) { id height } }"
    same("rows_query", flow.rows_query(one, "rows", {"m": "maker 7"}, "q"), {"data": {"lamps": [{"id": 7, "height": 1.5}]}})
    same("nlp_query", flow.nlp_query("Which lamps are there?")["detected_schemas"], ["lamps"])
    structured = flow.structured_query("lamps with maker 7", "rows")
    check("structured_query", "lamps" in str(structured["data"]), structured)
    same("detect_type", flow.detect_type(CSV), "csv")
    check("generate_descriptor", "maker" in str(flow.generate_descriptor(CSV, "csv", "lamps")), "")
    same("schema_selection", flow.schema_selection(CSV), ["lamps"])
    check("diagnose_data", flow.diagnose_data(CSV, "lamps")["detected-type"] == "csv", flow.diagnose_data(CSV, "lamps"))


def answers(api, mcp):
    flow = api.flow().id("default")
    completion = flow.text_completion("Be brief.", "Say nonce-t-1")
    check("text_completion", completion.text == "Say nonce-t-1" and completion.out_token == 2, completion)
    api.config().put([ConfigValue("prompt", "template.mine", '{"prompt": "Say {{x}}.", "response-type": "text"}')])
    until("prompt", lambda: refused(lambda: flow.prompt("mine", {"x": "nonce-p-1"})), lambda text: text == "Say nonce-p-1.")
    api.config().put([ConfigValue("mcp", "m1", f'{{"remote-name": "remote", "url": "{mcp}"}}')])
    until("mcp_tool", lambda: refused(lambda: flow.mcp_tool("m1", {"say": "nonce-m-1"})), lambda text: text == "heard nonce-m-1")
    until("document_rag", lambda: flow.document_rag(BUILT, "docs").text, lambda text: text == BUILT_ANSWER)
    rag = until("graph_rag", lambda: flow.graph_rag(FRASK, "docs"), lambda answer: "glassblower from Pellworth [1]" in answer.text)
    same("graph_rag", rag.sources, [{"uri": "urn:doc:lantern", "title": "The lantern"}] if rag.sources and "uri" in rag.sources[0] else rag.sources)
    check("graph_rag", "urn:doc:lantern" in str(rag.sources), rag.sources)
    check("agent", isinstance(flow.agent("Who is nobody at all?"), str), "")
    same("load_text", flow.load_text(b"The Wexley clock was built by Ada Thorn. Ada Thorn was a locksmith.", "urn:doc:loaded", collection="loaded"), {})
    same("load_document", flow.load_document(b"%PDF-", "urn:doc:bad", collection="loaded"), {})
    until("load_text", lambda: flow.document_rag("Who built the Wexley clock?", "loaded").text, lambda text: "Ada Thorn" in text)
    for name, ask in {
        "cloze": lambda: flow.cloze("m", "q"),
        "cloze_list_models": flow.cloze_list_models,
        "decision_scoring": lambda: flow.decision_scoring({}, {"a": "b"}),
        "field_extraction": lambda: flow.field_extraction({}, {"a": "b"}),
    }.items():
        fails(name, NOT_SAID, ask)
    fails("image_to_text", "reads no pictures", lambda: flow.image_to_text(PNG, "image/png"))
    fails("request", "ProtocolException: Status code 404", lambda: flow.request("service/none", {}))


def refused(ask):
    """What a service says while it does not know yet what was configured a moment ago."""
    try:
        return ask()
    except Exception as error:
        return str(error)


def socket(api):
    client = api.socket()
    flow = client.flow("default")
    same("socket text_completion", flow.text_completion("Be brief.", "Say nonce-s-1").text, "Say nonce-s-1")
    chunks = list(flow.text_completion("Be brief.", "Say nonce-s-2", streaming=True))
    check("socket text_completion", "".join(c.content for c in chunks) == "Say nonce-s-2" and chunks[-1].end_of_stream, chunks)
    same("socket list_models", flow.list_models()[0]["owned_by"], "threadgraph")
    same("socket prompt", flow.prompt("mine", {"x": "nonce-s-3"}).text, "Say nonce-s-3.")
    same("socket prompt", "".join(c.content for c in flow.prompt("mine", {"x": "nonce-s-4"}, streaming=True)), "Say nonce-s-4.")
    same("socket mcp_tool", flow.mcp_tool("m1", {"say": "nonce-s-5"})["text"], "heard nonce-s-5")
    same("socket embeddings", len(flow.embeddings(["a", "b"])["vectors"]), 2)
    same("socket rerank", len(flow.rerank([{"query_id": "q", "query_text": "x"}], [{"document_id": "a", "document_text": "x"}])["results"]), 1)
    same("socket triples_query", flow.triples_query(s="urn:e:7", collection="docs")[0]["o"], {"t": "l", "v": "7", "ln": "en"})
    batches = list(flow.triples_query_stream(p="urn:p:n", collection="docs", limit=250, batch_size=100))
    same("socket triples_query_stream", [len(batch) for batch in batches if batch], [100, 100, 50])
    frames = list(flow.sparql_query_stream("SELECT ?o { ?s <urn:p:n> ?o }", "docs", batch_size=100))
    same("socket sparql_query_stream", sum(len(frame.get("bindings", [])) for frame in frames), 250)
    same("socket rows_query", len(flow.rows_query("{ lamps(limit: 3) { id } }", "rows")["data"]["lamps"]), 3)
    until("import_graph_embeddings", lambda: flow.graph_embeddings_query("a green bottle", "docs", 1)["entities"], lambda found: found and found[0]["entity"]["i"] == "urn:e:bottle")
    until("import_entity_contexts", lambda: flow.graph_embeddings_query("the seventh thing", "docs", 1)["entities"], lambda found: found and found[0]["entity"]["i"] == "urn:e:7")
    until("import_document_embeddings", lambda: flow.document_embeddings_query("a green bottle", "docs", 1)["chunks"], lambda found: found and found[0]["chunk_id"] == "urn:chunk:bottle")
    until("socket row_embeddings_query", lambda: flow.row_embeddings_query("maker 7", "lamps", "rows", limit=1)["matches"], lambda found: found and found[0]["text"] == "maker 7")
    same("socket document_rag", flow.document_rag(BUILT, "docs").text, BUILT_ANSWER)
    same("socket document_rag", "".join(c.content for c in flow.document_rag(BUILT, "docs", streaming=True)), BUILT_ANSWER)
    check("socket graph_rag", "glassblower from Pellworth [1]" in flow.graph_rag(FRASK, "docs").text, "")
    check("socket graph_rag", "glassblower from Pellworth [1]" in "".join(c.content for c in flow.graph_rag(FRASK, "docs", streaming=True)), "")
    said = list(flow.agent("Which Sunday may visitors light the Harrowgate lantern?", collection="docs", streaming=True))
    answer = "".join(c.content for c in said if c.message_type == "final-answer")
    check("socket agent", "first Sunday of May [1]" in answer and {"thought", "observation"} <= {c.message_type for c in said}, answer)
    for name, ask in {
        "cloze": lambda: flow.cloze("m", "q"),
        "cloze_list_models": flow.cloze_list_models,
        "decision_scoring": lambda: flow.decision_scoring({}, {"a": "b"}),
        "field_extraction": lambda: flow.field_extraction({}, {"a": "b"}),
    }.items():
        fails("socket " + name, NOT_SERVED, ask)
    fails("socket image_to_text", "reads no pictures", lambda: flow.image_to_text(PNG, "image/png"))
    traces(api, flow)
    cores(api, client)
    client.close()


def traces(api, flow):
    sessions = {}
    for name, ask in {
        "graph": flow.graph_rag_explain(FRASK, "docs"),
        "document": flow.document_rag_explain(BUILT, "docs"),
        "agent": flow.agent_explain(FRASK, "docs"),
    }.items():
        events = [event for event in ask if hasattr(event, "explain_id")]
        check(f"{name} explain", len(events) > 3 and all(event.triples for event in events), events)
        sessions[name] = events[0].explain_id
    client = ExplainabilityClient(flow)
    where = {"graph": "urn:graph:retrieval", "collection": "docs"}
    for name, kind in {"graph": "graphrag", "document": "docrag", "agent": "agent"}.items():
        same("detect_session_type", client.detect_session_type(sessions[name], **where), kind)
    listed = until("list_sessions", lambda: client.list_sessions(**where), lambda seen: set(sessions.values()) <= {one.uri for one in seen})
    check("list_sessions", FRASK in [one.query for one in listed], listed)
    trace = client.fetch_graphrag_trace(sessions["graph"], api=api, **where)
    same("fetch_graphrag_trace", trace["question"].query, FRASK)
    check("fetch_graphrag_trace", trace["focus"] and trace["synthesis"], trace)
    focus = client.fetch_focus_with_edges(trace["focus"].uri, **where)
    check("fetch_focus_with_edges", focus.edge_selections, focus)
    chosen = client.fetch_edge_selection(focus.edge_selections[0].uri, **where)
    check("fetch_edge_selection", chosen.edge, chosen)
    labels = client.resolve_edge_labels(chosen.edge, "docs")
    check("resolve_edge_labels", "Ottoline Frask" in labels, labels)
    same("resolve_label", client.resolve_label("http://trustgraph.ai/e/ottoline-frask", "docs"), "Ottoline Frask")
    trace = client.fetch_docrag_trace(sessions["document"], api=api, **where)
    check("fetch_docrag_trace", trace["question"].query == BUILT and trace["synthesis"], trace)
    content = client.fetch_document_content(trace["synthesis"].document, api)
    check("fetch_document_content", "Ottoline Frask" in content, content)
    same("fetch_entity", client.fetch_entity(sessions["document"], **where).query, BUILT)
    trace = client.fetch_agent_trace(sessions["agent"], api=api, **where)
    check("fetch_agent_trace", trace["question"].query == FRASK and trace["steps"], trace)


def cores(api, client):
    knowledge = api.knowledge()
    until("list_kg_cores", knowledge.list_kg_cores, lambda ids: "urn:doc:lantern" in ids)
    records = list(client.get_kg_core("urn:doc:lantern"))
    check("get_kg_core", {"triples", "graph-embeddings", "library-metadata", "library-blob"} <= {key for record in records for key in record}, records[:1])
    about = {"id": "urn:core:2", "root": "", "collection": "default"}
    iri = lambda text: {"t": "i", "i": text}  # noqa: E731
    fact = {"s": iri("urn:e:x"), "p": iri("urn:p:x"), "o": {"t": "l", "v": "שלום", "ln": "he", "dir": "rtl"}}
    client.put_kg_core("urn:core:2", triples={"metadata": about, "triples": [fact]})
    client.put_kg_core("urn:core:2", graph_embeddings={"metadata": about, "entities": [{"entity": iri("urn:e:x"), "vector": [0.5, 2.0]}]})
    client.put_kg_core("urn:core:2", library_metadata={"id": "urn:core:2", "kind": "text/plain", "title": "Core", "parent-id": "", "document-type": "source", "comments": "", "tags": []})
    client.put_kg_core("urn:core:2", library_blob={"id": "urn:core:2", "data": "Y29yZQ=="})
    same("put_kg_core", api.library().get_document_content("urn:core:2"), b"core")
    same("get_kg_core", [r["triples"]["triples"] for r in client.get_kg_core("urn:core:2") if "triples" in r], [[fact]])
    knowledge.load_kg_core("urn:core:2", collection="cored")
    flow = client.flow("default")
    same("load_kg_core", flow.triples_query(s="urn:e:x", collection="cored"), [fact])
    knowledge.unload_kg_core("urn:core:2")
    same("unload_kg_core", flow.triples_query(s="urn:e:x", collection="cored"), [])
    knowledge.delete_kg_core("urn:core:2")
    check("delete_kg_core", "urn:core:2" not in knowledge.list_kg_cores(), knowledge.list_kg_cores())
    chunks = {"metadata": {**about, "id": "urn:core:3"}, "chunks": [{"chunk_id": "urn:chunk:x", "vector": [0.5, 2.0]}]}
    client.put_de_core("urn:core:3", document_embeddings=chunks)
    same("list_de_cores", knowledge.list_de_cores(), ["urn:core:3"])
    same("get_de_core", [r["document-embeddings"]["chunks"][0]["vector"] for r in client.get_de_core("urn:core:3")], [[0.5, 2.0]])
    knowledge.load_de_core("urn:core:3", collection="cored")
    knowledge.delete_de_core("urn:core:3")
    same("delete_de_core", knowledge.request({"operation": "list-de-cores"})["ids"], [])


def main(url, key, mcp):
    sdk_watch.watch()
    api = Api(url, token=key)
    api.config().put([ConfigValue("schema", "lamps", SCHEMA)])
    parts = [configuration, flows, library, bulk, queries, lambda api: answers(api, mcp), socket]
    for part in parts:
        try:
            part(api)
        except Exception as error:
            sdk_watch.wrong.append(f"{error!r} {''.join(traceback.format_tb(error.__traceback__)[-3:])}"[-700:])
    api.close()
    try:
        asyncio.run(asynchronous(url, key))
    except Exception as error:
        sdk_watch.wrong.append(f"{error!r} {''.join(traceback.format_tb(error.__traceback__)[-3:])}"[-700:])
    sdk_watch.told(EXCUSED)


main(*sys.argv[1:])

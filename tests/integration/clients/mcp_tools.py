"""Uses the official client of the Model Context Protocol, unmodified, over HTTP and through the program for stdin and stdout, in the
revisions with a handshake and in the one without, and looks at what it gives.

Arguments: address of the gateway, the path of `tg`, and keys: of a reader, one that may only find statements, of an
administrator. Prints what was wrong.
"""

import asyncio
import json
import sys
import traceback

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

URL, TG, READER, HELD, ADMIN = sys.argv[1:]
ALL = [
    "ask_agent",
    "list_agents",
    "chat_with_agent",
    "graph_rag",
    "document_rag",
    "query_triples",
    "sparql_query",
    "search_documents",
    "list_documents",
    "list_document_parts",
    "get_document",
    "add_document",
    "list_collections",
    "list_flows",
    "search",
    "fetch",
]
WRONG = []
TEXT = "The lighthouse of Skagen is painted grey. It was built by Emil Volker in 1858. Ships see it from afar."


def same(what, found, wanted):
    if found != wanted:
        WRONG.append(f"{what}: {found!r} and not {wanted!r}")


def has(what, found, wanted):
    if wanted not in found:
        WRONG.append(f"{what}: no {wanted!r} in {found!r}")


def over_http(key, query=""):
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60)
    return streamable_http_client(f"{URL}mcp{query}", http_client=client)


def over_stdio(key, *more):
    return StdioServerParameters(command=TG, args=["mcp-server", "-u", URL, *more], env={"TRUSTGRAPH_TOKEN": key})


def text(result):
    return "".join(block.text for block in result.content)


async def refused(what, client, tool, arguments, message):
    result = await client.call_tool(tool, arguments)
    same(f"{what}: is an error", result.is_error, True)
    has(what, text(result), message)


async def used(what, transport, mode, revision):
    async with Client(transport, mode=mode) as client:
        same(f"{what}: revision", client.protocol_version, revision)
        if mode != "2026-07-28":
            # Whoever names the revision beforehand is not told.
            same(f"{what}: server", client.server_info.name, "threadgraph")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        same(f"{what}: tools", list(tools), [name for name in ALL if name != "add_document"])
        same(f"{what}: reads", tools["query_triples"].annotations.read_only_hint, True)
        same(f"{what}: required", tools["ask_agent"].input_schema["required"], ["question"])

        heard = []

        async def progress(done, _total, message):
            heard.append((done, message))

        asked = {"question": "What is it? nonce-7"}
        answer = await client.call_tool("ask_agent", asked, progress_callback=progress)
        has(f"{what}: answer", text(answer), "The answer for nonce-7 is here.")
        same(f"{what}: counted", [done for done, _ in heard], [float(at) for at in range(1, len(heard) + 1)])
        told = "\n".join(message for _, message in heard)
        for kind in ["thought: I should look this up.", "action: ", "observation: 42"]:
            has(f"{what}: progress", told, kind)
        answer = await client.call_tool("ask_agent", asked)
        has(f"{what}: without progress", text(answer), "The answer for nonce-7 is here.")

        found = await client.call_tool("query_triples", {"subject": "urn:a"})
        same(f"{what}: statements", text(found), '<urn:a> <urn:b> "told" .\n')
        query = {"query": "SELECT ?o WHERE { <urn:a> <urn:b> ?o }"}
        found = await client.call_tool("sparql_query", query)
        same(f"{what}: rows", found.structured_content["rows"], [{"o": '"told"'}])
        same(f"{what}: as text", json.loads(text(found)), found.structured_content)
        flows = await client.call_tool("list_flows", {})
        same(f"{what}: flows", flows.structured_content, {"flows": ["default"]})

        agents = await client.call_tool("list_agents", {})
        names = [agent["name"] for agent in agents.structured_content["agents"]]
        has(f"{what}: agents", names, "concise-de")
        nobody = {"name": "nobody", "message": "q"}
        await refused(f"{what}: no such agent", client, "chat_with_agent", nobody, "name: there is no such agent")

        added = {"text": "t", "title": "t"}
        await refused(f"{what}: a writer's tool", client, "add_document", added, "access denied")
        await refused(f"{what}: no question", client, "ask_agent", {}, "question: is required")
        await refused(f"{what}: unknown argument", client, "list_flows", {"x": 1}, "x: is not an argument")
        nowhere = {"flow": "nowhere", "query": "q"}
        await refused(f"{what}: no such flow", client, "graph_rag", nowhere, "Invalid flow default/nowhere")
        try:
            await client.call_tool("nothing", {})
        except MCPError as error:
            same(f"{what}: no such tool", error.code, -32602)
        else:
            WRONG.append(f"{what}: a tool that is not there answers")


async def held():
    async with Client(over_http(HELD), mode="auto") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        same("held: tools", tools, ["query_triples"])
        await refused("held: agent", client, "ask_agent", {"question": "q"}, "access denied")
        found = await client.call_tool("query_triples", {"subject": "urn:a"})
        has("held: statements", text(found), "told")


async def elsewhere(what, transport):
    async with Client(transport, mode="auto") as client:
        same(f"{what}: tools", [tool.name for tool in (await client.list_tools()).tools], [])
        for tool, arguments in [("query_triples", {}), ("ask_agent", {"question": "q"}), ("list_documents", {})]:
            await refused(f"{what}: {tool}", client, tool, arguments, "access denied")


async def unknown():
    async with httpx2.AsyncClient() as client:
        reply = await client.post(f"{URL}mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        same("unknown", reply.status_code, 401)
    try:
        async with Client(over_stdio("tg_nobody"), mode="legacy"):
            WRONG.append("somebody who is not known gets in")
    except Exception as error:
        has("unknown, over stdio", repr(error) + repr(getattr(error, "exceptions", "")), "auth failure")


async def library():
    async with Client(over_http(ADMIN), mode="auto") as client:
        same("library: tools", [tool.name for tool in (await client.list_tools()).tools], ALL)
        added = await client.call_tool("add_document", {"text": TEXT, "title": "Skagen"})
        same("library: added", added.is_error, False)
        document = added.structured_content["document_id"]
        whole = await client.call_tool("get_document", {"document_id": document})
        same("library: text", text(whole), TEXT)
        rest = await client.call_tool("get_document", {"document_id": document, "offset": 4})
        same("library: from a place on", text(rest), TEXT[4:])
        listed = await client.call_tool("list_documents", {})
        titles = {one["id"]: one["title"] for one in listed.structured_content["documents"]}
        same("library: listed", titles.get(document), "Skagen")
        resources = {one.name: str(one.uri) for one in (await client.list_resources()).resources}
        read = await client.read_resource(resources["Skagen"])
        same("library: resource", [content.text for content in read.contents], [TEXT])
        prompt = await client.get_prompt("summarise_document", {"document_id": document})
        has("library: prompt", prompt.messages[0].content.text, document)
        for _ in range(300):
            found = await client.call_tool("search_documents", {"query": "lighthouse"})
            passages = [] if found.is_error else found.structured_content["passages"]
            if passages:
                break
            await asyncio.sleep(0.2)
        same("library: found", bool(passages), True)
        passage = await client.call_tool("get_document", {"document_id": passages[0]["chunk_id"]})
        has("library: passage", text(passage), "Emil Volker")
        result = (await client.call_tool("search", {"query": "lighthouse"})).structured_content["results"][0]
        same("library: title", bool(result["title"]), True)
        fetched = await client.call_tool("fetch", {"id": result["id"]})
        has("library: fetched", json.loads(text(fetched))["text"], "Emil Volker")
        parts = await client.call_tool("list_document_parts", {"document_id": document})
        same("library: parts", bool(parts.structured_content["parts"]), True)
        missing = {"document_id": "urn:none"}
        same("library: missing", (await client.call_tool("get_document", missing)).is_error, True)


async def main():
    for mode, revision in [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]:
        await used(f"http {mode}", over_http(READER), mode, revision)
        await used(f"stdio {mode}", over_stdio(READER), mode, revision)
    await held()
    await elsewhere("another workspace", over_http(READER, "?workspace=acme"))
    await elsewhere("no workspace", over_http(READER, "?workspace=nowhere"))
    await elsewhere("another workspace, stdio", over_stdio(READER, "-w", "acme"))
    await unknown()
    await library()


try:
    asyncio.run(main())
except BaseException:
    WRONG.append(traceback.format_exc())
print(json.dumps({"wrong": WRONG}))

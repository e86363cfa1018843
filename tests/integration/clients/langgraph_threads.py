"""Uses the official client of the LangGraph API, unmodified, and looks at what it gives.

Arguments: base URL with `/langgraph`, a key. Prints what was wrong.
"""

import asyncio
import json
import sys
import traceback
import uuid

import httpx
import langgraph_sdk

URL, KEY = sys.argv[1:]
AGENT, OTHER = "concise-de", "librarian"
WRONG = []


def same(what, found, wanted):
    if found != wanted:
        WRONG.append(f"{what}: {found!r} and not {wanted!r}")


def fails(what, status, work):
    """Newer clients have an error of their own for each status; all of them name it."""
    try:
        work()
    except Exception as error:
        found = getattr(error, "status_code", None)
        if isinstance(error, httpx.HTTPStatusError):
            found = error.response.status_code
        same(f"{what}: status", found, status)
    else:
        WRONG.append(f"{what}: does not fail")


def says(text):
    return {"messages": [{"role": "user", "content": text}]}


def texts(values):
    return [(one["type"], one["content"]) for one in values["messages"]]


LAMP = [("human", "Who built the lamp?"), ("ai", "Ada Brisk built it.")]


def assistants(api):
    found = {one["assistant_id"]: one for one in api.assistants.search(limit=100)}
    same("graph", found[AGENT]["graph_id"], AGENT)
    same("one", [one["name"] for one in api.assistants.search(graph_id=AGENT)], [AGENT])
    same("page", len(api.assistants.search(limit=1, offset=1)), 1)
    same("shown", api.assistants.get(AGENT)["description"], found[AGENT]["description"])
    fails("no assistant", 404, lambda: api.assistants.get("nobody"))


def threads(api):
    made = api.threads.create()
    thread = made["thread_id"]
    same("new", (made["status"], made["values"]), ("idle", None))
    same("empty", api.threads.get_state(thread)["values"], {"messages": []})
    # The first run says which agent it is.
    values = api.runs.wait(thread, AGENT, input=says("Who built the lamp?"))
    same("first turn", texts(values), LAMP)
    same("agent", api.threads.get(thread)["metadata"]["graph_id"], AGENT)
    fails("another agent", 400, lambda: api.runs.wait(thread, OTHER, input=says("x")))
    values = api.runs.wait(thread, AGENT, input=says("And then?"), on_disconnect="cancel")
    same("second turn", texts(values)[2:], [("human", "And then?"), ("ai", "Then it rained.")])
    state = api.threads.get_state(thread)
    same("state", (texts(state["values"]), state["next"]), (texts(values), []))
    history = api.threads.get_history(thread)
    same("history", [len(one["values"]["messages"]) for one in history], [4, 2])
    earlier = api.threads.get_history(thread, before=history[0]["checkpoint"])
    same("before", [len(one["values"]["messages"]) for one in earlier], [2])
    same("runs", [one["status"] for one in api.runs.list(thread)], ["success", "success"])
    api.threads.copy(thread)
    copies = [one for one in api.threads.search(metadata={"graph_id": AGENT}) if one["thread_id"] != thread]
    state = api.threads.get_state(copies[0]["thread_id"])
    same("copy", texts(state["values"]), texts(values))
    api.threads.delete(copies[0]["thread_id"])
    api.threads.delete(thread)
    fails("deleted", 404, lambda: api.threads.get(thread))
    own = str(uuid.uuid4())
    same("own id", api.threads.create(thread_id=own, graph_id=AGENT)["thread_id"], own)
    same("again", api.threads.create(thread_id=own, if_exists="do_nothing")["thread_id"], own)
    fails("taken", 409, lambda: api.threads.create(thread_id=own))


def streamed(api):
    thread = str(uuid.uuid4())
    seen = []
    parts = api.runs.stream(
        thread, AGENT, input=says("Who built the lamp?"), if_not_exists="create",
        stream_mode=["values", "updates", "messages-tuple"], on_run_created=seen.append,
    )
    parts = list(parts)
    kinds = [part.event for part in parts]
    same("first", kinds[:2], ["metadata", "values"])
    same("last", [kind for kind in kinds if kind != "end"][-2:], ["updates", "values"])
    same("run", seen[0]["run_id"], parts[0].data["run_id"])
    pieces = [part.data[0] for part in parts if part.event == "messages"]
    same("pieces", "".join(piece["content"] for piece in pieces), "Ada Brisk built it.")
    same("one message", len({piece["id"] for piece in pieces}), 1)
    same("values", texts(parts[kinds.index("updates") + 1].data), LAMP)
    parts = list(api.runs.stream(thread, AGENT, input=says("And then?"), stream_mode="messages"))
    told = {kind: [part.data for part in parts if part.event == f"messages/{kind}"] for kind in ("partial", "complete")}
    same("as it is written", bool(told["partial"]), True)
    same("once it is written", [one[0]["content"] for one in told["complete"]], ["Then it rained."])
    fails("no thread", 404, lambda: list(api.runs.stream(str(uuid.uuid4()), AGENT, input=says("x"))))
    fails("no debug", 400, lambda: list(api.runs.stream(thread, AGENT, input=says("x"), stream_mode="debug")))
    kinds = [part.event for part in api.runs.stream(thread, AGENT, input=says("Fail now"))]
    same("failure", "error" in kinds, True)
    same("failed run", api.runs.list(thread)[0]["status"], "error")


def joined(api):
    thread = api.threads.create(graph_id=AGENT)["thread_id"]
    run = api.runs.create(thread, AGENT, input=says("Tell me slowly"))
    same("under way", api.runs.get(thread, run["run_id"])["status"], "running")
    same("busy", api.threads.get(thread)["status"], "busy")
    busy = lambda: api.runs.create(thread, AGENT, input=says("x"), multitask_strategy="reject")
    fails("busy", 409, busy)
    values = api.runs.join(thread, run["run_id"])
    same("joined", texts(values), [("human", "Tell me slowly"), ("ai", "It is done.")])
    same("over", api.runs.get(thread, run["run_id"])["status"], "success")
    parts = list(api.runs.join_stream(thread, run["run_id"]))
    told = [part.data for part in parts if part.event == "values"]
    same("joined stream", [texts(one) for one in told], [texts(values)])
    fails("no run", 404, lambda: api.runs.join(thread, str(uuid.uuid4())))


def stateless(api):
    same("stateless", texts(api.runs.wait(None, AGENT, input=says("Who built the lamp?"))), LAMP)
    parts = list(api.runs.stream(None, AGENT, input=says("Who built the lamp?")))
    told = [texts(part.data) for part in parts if part.event == "values"]
    same("stateless stream", told, [LAMP])


def users(api):
    """What one user has, another does not see."""
    thread = api.threads.create(graph_id=AGENT)["thread_id"]
    other = langgraph_sdk.get_sync_client(url=URL, api_key=KEY, headers={"SPASS-User-Id": "eve"})
    fails("another user", 404, lambda: other.threads.get(thread))
    stranger = langgraph_sdk.get_sync_client(url=URL, api_key="tg_wrong")
    fails("no key", 401, lambda: stranger.assistants.search())


async def asynchronous():
    api = langgraph_sdk.get_client(url=URL, api_key=KEY)
    thread = (await api.threads.create(graph_id=AGENT))["thread_id"]
    kinds = [part.event async for part in api.runs.stream(thread, AGENT, input=says("Who built the lamp?"))]
    same("asyncio", [kind for kind in kinds if kind != "end"], ["metadata", "values", "values"])


def main():
    api = langgraph_sdk.get_sync_client(url=URL, api_key=KEY)
    for work in (assistants, threads, streamed, joined, stateless, users):
        try:
            work(api)
        except Exception:
            WRONG.append(f"{work.__name__}: {traceback.format_exc()}")
    try:
        asyncio.run(asynchronous())
    except Exception:
        WRONG.append(f"asynchronous: {traceback.format_exc()}")
    print(json.dumps({"wrong": WRONG}))


main()

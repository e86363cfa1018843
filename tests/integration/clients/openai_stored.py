"""Uses stored responses through the official client of the OpenAI API, unmodified, and looks at what it gives.

Arguments: base URL with `/v1`, a key. Prints what was wrong.
"""

import json
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import openai

URL, KEY = sys.argv[1:]
AGENT, OTHER = "agent/concise-de", "agent/librarian"
WRONG = []


def same(what, found, wanted):
    if found != wanted:
        WRONG.append(f"{what}: {found!r} and not {wanted!r}")


def fails(what, kind, code, work):
    try:
        work()
    except kind as error:
        same(f"{what}: code", error.code, code)
    else:
        WRONG.append(f"{what}: does not fail")


def client(**headers):
    return openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=60, default_headers=headers)


def followed(api):
    first = api.responses.create(model=AGENT, input="Who built the lamp?")
    same("first", (first.output_text, first.status, first.store), ("Ada Brisk built it.", "completed", True))
    again = api.responses.retrieve(first.id)
    same("read", (again.id, again.output_text, again.model), (first.id, first.output_text, AGENT))
    with api.responses.stream(model=AGENT, input="And then?", previous_response_id=first.id) as events:
        kinds = [event.type for event in events]
        second = events.get_final_response()
    same("events", (kinds[0], kinds[-1]), ("response.created", "response.completed"))
    same("second", (second.output_text, second.previous_response_id), ("Then it rained.", first.id))
    same("previous", api.responses.retrieve(second.id).previous_response_id, first.id)
    conversation = second.conversation.id
    same("conversation", first.conversation.id, conversation)
    third = api.responses.create(model=AGENT, input="Good night.", conversation=conversation)
    same("third", (third.output_text, third.conversation.id), ("Fine.", conversation))
    create = api.responses.create
    branch = lambda: create(model=AGENT, input="And then?", previous_response_id=first.id)
    fails("a branch", openai.ConflictError, "conflict", branch)
    other = lambda: create(model=OTHER, input="And then?", previous_response_id=third.id)
    fails("another agent", openai.BadRequestError, "session_agent_mismatch", other)
    fails("one of several", openai.ConflictError, "conflict", lambda: api.responses.delete(third.id))
    eve = client(**{"SPASS-User-Id": "eve"})
    fails("another user", openai.NotFoundError, "not_found", lambda: eve.responses.retrieve(first.id))
    follows = lambda: eve.responses.create(model=AGENT, input="x", previous_response_id=third.id)
    fails("another user follows", openai.NotFoundError, "previous_response_not_found", follows)


def deleted(api):
    only = api.responses.create(model=AGENT, input="Who built the lamp?", store=True)
    api.responses.delete(only.id)
    fails("deleted", openai.NotFoundError, "not_found", lambda: api.responses.retrieve(only.id))
    free = api.responses.create(model=AGENT, input="Who built the lamp?", store=False)
    same("not stored", (free.output_text, free.store), ("Ada Brisk built it.", False))
    fails("not there", openai.NotFoundError, "not_found", lambda: api.responses.retrieve(free.id))
    model = lambda: api.responses.create(model="scripted", input="x", conversation="c")
    fails("of a model", openai.BadRequestError, "validation_error", model)


def repeated(api):
    """The same request id and content are the same response, of a client that lost the first answer."""
    own = {"X-Request-Id": "stored-again"}
    create = lambda text: api.responses.create(model=AGENT, input=text, extra_headers=own)
    first, again = create("Who built the lamp?"), create("Who built the lamp?")
    shown = lambda one: (one.id, one.created_at, one.output_text, one.conversation.id)
    same("again", shown(again), shown(first))
    with api.responses.stream(model=AGENT, input="Who built the lamp?", extra_headers=own) as events:
        for _ in events:
            pass
        streamed = events.get_final_response()
    same("streamed again", shown(streamed), shown(first))
    other = create("Good night.")
    same("another text", other.conversation.id == first.conversation.id, False)
    for _ in range(2):
        api.responses.delete(first.id, extra_headers=own)
    fails("deleted by another request", openai.NotFoundError, "not_found", lambda: api.responses.delete(first.id))


def repeated_behind(api):
    """The same behind another response, also once a third one follows."""
    first = api.responses.create(model=AGENT, input="Who built the lamp?")
    own = {"X-Request-Id": "behind-again"}
    behind = {"model": AGENT, "input": "And then?", "previous_response_id": first.id}
    create = lambda: api.responses.create(**behind, extra_headers=own)
    shown = lambda one: (one.id, one.created_at, one.output_text, one.previous_response_id)
    second = create()
    same("behind again", shown(create()), shown(second))
    api.responses.create(model=AGENT, input="Good night.", previous_response_id=second.id)
    same("behind and followed", shown(create()), shown(second))


def at_once(api):
    """Requests that are the same and come together are one response, which stays."""
    own = {"X-Request-Id": "at-once"}
    create = lambda _: api.responses.create(model=AGENT, input="Who built the lamp?", extra_headers=own)
    with ThreadPoolExecutor(4) as pool:
        names = {one.id for one in pool.map(create, range(4))}
    same("at once", len(names), 1)
    same("kept", api.responses.retrieve(names.pop()).status, "completed")


def cancelled(api):
    events = iter(api.responses.create(model=AGENT, input="Say nothing", stream=True))
    begun = next(events)
    same("begun", (begun.type, begun.response.status), ("response.created", "in_progress"))
    name = begun.response.id
    same("in progress", api.responses.retrieve(name).status, "in_progress")
    same("cancelled", api.responses.cancel(name).status, "cancelled")
    same("last event", [event.type for event in events][-1], "response.failed")
    over = api.responses.cancel(name)
    same("over", (over.status, over.error.code), ("failed", "server_error"))


def main():
    api = client()
    for work in (followed, deleted, repeated, repeated_behind, at_once, cancelled):
        try:
            work(api)
        except Exception:
            WRONG.append(traceback.format_exc())
    print(json.dumps({"wrong": WRONG}))


main()

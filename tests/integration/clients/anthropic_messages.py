"""Uses the official client of the Anthropic API, unmodified, and looks at what it gives.

Arguments: base URL without `/v1`, a key that may ask for any model, a key that is held to `scripted`, a second model that the
system has. Prints what was wrong.
"""

import json
import sys
import traceback

import anthropic

URL, KEY, HELD, OTHER = sys.argv[1:]
HELLO = [{"role": "user", "content": "hello"}]
WEATHER = [{"role": "user", "content": [{"type": "text", "text": "weather of Oslo", "cache_control": {"type": "ephemeral"}}]}]
TOOLS = [
    {
        "name": "weather",
        "description": "Tells the weather of a city",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]
WRONG = []


def same(what, found, wanted):
    if found != wanted:
        WRONG.append(f"{what}: {found!r} and not {wanted!r}")


def fails(what, kind, work):
    try:
        work()
    except kind as error:
        same(f"{what}: shape", error.body.get("type"), "error")
    else:
        WRONG.append(f"{what}: does not fail")


def client(key):
    """The key goes into `x-api-key`."""
    return anthropic.Anthropic(base_url=URL, api_key=key, max_retries=0, timeout=30)


def whole(api):
    system = [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}]
    answer = api.messages.create(
        model="scripted", max_tokens=64, system=system, messages=HELLO, metadata={"user_id": "u"},
        extra_body={"temperature": 0.5},
    )
    same("text", [block.text for block in answer.content], ["hello from near"])
    same("reason", answer.stop_reason, "end_turn")
    same("usage", answer.usage.output_tokens > 0, True)
    counted = api.messages.count_tokens(model="scripted", messages=HELLO)
    same("tokens", counted.input_tokens > 0, True)


def streamed(api):
    with api.messages.stream(model="scripted", max_tokens=64, messages=HELLO) as events:
        text = "".join(events.text_stream)
        end = events.get_final_message()
    same("streamed text", text, "hello from near")
    same("streamed reason", end.stop_reason, "end_turn")


def tools(api):
    answer = api.messages.create(model="scripted", max_tokens=64, messages=WEATHER, tools=TOOLS)
    same("reason of a call", answer.stop_reason, "tool_use")
    (call,) = [block for block in answer.content if block.type == "tool_use"]
    same("call", (call.name, call.input), ("weather", {"city": "Oslo"}))
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "minus 3 degrees"}]}
    said = [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    end = api.messages.create(model="scripted", max_tokens=64, messages=[*WEATHER, *said], tools=TOOLS)
    same("after the call", end.content[0].text, "It is cold.")
    with api.messages.stream(model="scripted", max_tokens=64, messages=WEATHER, tools=TOOLS) as events:
        end = events.get_final_message()
    (call,) = [block for block in end.content if block.type == "tool_use"]
    same("streamed call", (call.name, call.input), ("weather", {"city": "Oslo"}))


def thoughts(api):
    messages = [{"role": "user", "content": "think first"}]
    plain = api.messages.create(model="scripted", max_tokens=64, messages=messages)
    same("answer after a thought", [block.type for block in plain.content], ["text"])
    thinking = {"type": "enabled", "budget_tokens": 1024}
    asked = api.messages.create(model="scripted", max_tokens=2048, messages=messages, thinking=thinking)
    same("a thought that was asked for", [block.type for block in asked.content], ["thinking", "text"])


def agents(api):
    """An agent of the system answers as a model does: it uses its own tool."""
    own = {"model": "agent/default", "max_tokens": 64, "messages": [{"role": "user", "content": "ask the calculator"}]}
    answer = api.messages.create(**own)
    same("text of an agent", [block.text.strip() for block in answer.content], ["It is 42."])
    same("reason of an agent", answer.stop_reason, "end_turn")
    same("usage of an agent", answer.usage.input_tokens > answer.usage.output_tokens > 0, True)
    with api.messages.stream(**own) as events:
        same("streamed text of an agent", "".join(events.text_stream).strip(), "It is 42.")
        same("streamed usage of an agent", events.get_final_message().usage.output_tokens > 0, True)
    fails("tools for an agent", anthropic.BadRequestError, lambda: api.messages.create(**own, tools=TOOLS))


def failures(api, held):
    create = api.messages.create
    ask = lambda api, model: api.messages.create(model=model, max_tokens=64, messages=HELLO)
    fails("no key", anthropic.AuthenticationError, lambda: ask(client("tg_wrong"), "scripted"))
    fails("another model", anthropic.PermissionDeniedError, lambda: ask(held, OTHER))
    fails("unknown model", anthropic.NotFoundError, lambda: ask(api, "nobody-has-this"))
    fails("no messages", anthropic.BadRequestError, lambda: create(model="scripted", max_tokens=9, messages=[]))
    same("held", ask(held, "scripted").type, "message")


def main():
    api, held = client(KEY), client(HELD)
    for work in (lambda: whole(api), lambda: streamed(api), lambda: tools(api), lambda: thoughts(api),
                 lambda: agents(api), lambda: failures(api, held)):
        try:
            work()
        except Exception:
            WRONG.append(traceback.format_exc())
    print(json.dumps({"wrong": WRONG}))


main()

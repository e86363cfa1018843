"""Uses the official client of the OpenAI API, unmodified, and looks at what it gives.

Arguments: base URL with `/v1`, a key that may ask for any model, a key that is held to `scripted`, a second model that the
system has. Prints what was wrong.
"""

import asyncio
import json
import sys
import traceback

import openai
import pydantic

URL, KEY, HELD, OTHER = sys.argv[1:]
HELLO = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]
PICTURE = "data:image/png;base64,iVBORw0KGgo="
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


def client(key, **more):
    return openai.OpenAI(base_url=URL, api_key=key, max_retries=0, timeout=30, **more)


def whole(api):
    raw = api.chat.completions.with_raw_response.create(model="scripted", messages=HELLO, temperature=0.5, max_tokens=9)
    same("sub-calls", raw.headers["spass-cost-sub-calls"], "1")
    answer = raw.parse()
    same("text", answer.choices[0].message.content, "hello from near")
    same("reason", answer.choices[0].finish_reason, "stop")
    same("object", answer.object, "chat.completion")
    same("total", answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)


def streamed(api):
    text, usage, reasons = "", None, []
    pieces = api.chat.completions.create(
        model="scripted", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    for piece in pieces:
        for choice in piece.choices:
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
        usage = piece.usage or usage
    same("streamed text", text, "hello from near")
    same("streamed reasons", reasons, ["stop"])
    same("streamed usage", usage is not None and usage.total_tokens > 0, True)


def pictured(api):
    """A picture goes to the model with the text; nobody fetches one from a private address."""

    def ask(url):
        parts = [{"type": "text", "text": "look at this"}, {"type": "image_url", "image_url": {"url": url}}]
        return api.chat.completions.create(model="scripted", messages=[{"role": "user", "content": parts}])

    same("pictured", ask(PICTURE).choices[0].message.content, "hello from near")
    private = "https://127.0.0.1/a.png"
    fails("a private picture", openai.BadRequestError, "validation_error", lambda: ask(private))


def failover(api):
    """The first backend fails before it says anything: the second answers, and nobody notices."""
    messages = [{"role": "user", "content": "fail near"}]
    answer = api.chat.completions.create(model="scripted", messages=messages)
    same("failover", answer.choices[0].message.content, "hello from far")


def cut(api):
    """One that fails after it has said something is told, and nothing is said twice."""
    text = ""
    try:
        messages = [{"role": "user", "content": "cut"}]
        for piece in api.chat.completions.create(model=OTHER, messages=messages, stream=True):
            text += "".join(choice.delta.content or "" for choice in piece.choices)
    except openai.APIError:
        same("cut text", text, "half ")
    else:
        WRONG.append(f"cut: no failure after {text!r}")


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells the weather of a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "strict": True,
        },
    }
]


def asked(messages, call):
    """The messages with a call of the model and what came of it."""
    function = {"name": call.function.name, "arguments": call.function.arguments}
    said = {"role": "assistant", "content": None, "tool_calls": [{"id": call.id, "type": "function", "function": function}]}
    return [*messages, said, {"role": "tool", "tool_call_id": call.id, "content": "minus 3 degrees"}]


def tools(api):
    messages = [{"role": "user", "content": "weather of Oslo"}]
    choice = api.chat.completions.create(model="scripted", messages=messages, tools=TOOLS).choices[0]
    same("reason of a call", choice.finish_reason, "tool_calls")
    same("text of a call", choice.message.content, None)
    (call,) = choice.message.tool_calls
    same("call", (call.type, call.function.name), ("function", "weather"))
    same("arguments", json.loads(call.function.arguments), {"city": "Oslo"})
    end = api.chat.completions.create(model="scripted", messages=asked(messages, call), tools=TOOLS)
    same("after the call", end.choices[0].message.content, "It is cold.")
    same("calls after it", end.choices[0].message.tool_calls, None)

    with api.chat.completions.stream(model="scripted", messages=messages, tools=TOOLS) as pieces:
        choice = pieces.get_final_completion().choices[0]
    same("reason of a streamed call", choice.finish_reason, "tool_calls")
    (call,) = choice.message.tool_calls
    same("streamed call", (call.function.name, json.loads(call.function.arguments)), ("weather", {"city": "Oslo"}))
    with api.chat.completions.stream(model="scripted", messages=asked(messages, call), tools=TOOLS) as pieces:
        same("after the streamed call", pieces.get_final_completion().choices[0].message.content, "It is cold.")


def older(api):
    """The API beside chats, and functions in the place of tools."""
    answer = api.completions.create(model="scripted", prompt="hello", max_tokens=9)
    same("completion", (answer.object, answer.choices[0].text), ("text_completion", "hello from near"))
    pieces = api.completions.create(model="scripted", prompt="hello", stream=True)
    same("streamed completion", "".join(piece.choices[0].text for piece in pieces), "hello from near")
    echo = lambda: api.completions.create(model="scripted", prompt="hello", echo=True)
    fails("an echo", openai.BadRequestError, "validation_error", echo)

    messages = [{"role": "user", "content": "weather of Oslo"}]
    functions = [{key: value for key, value in TOOLS[0]["function"].items() if key != "strict"}]
    choice = api.chat.completions.create(model="scripted", messages=messages, functions=functions).choices[0]
    call = choice.message.function_call
    same("function", (choice.finish_reason, call.name), ("function_call", "weather"))
    said = {"role": "assistant", "content": None, "function_call": {"name": call.name, "arguments": call.arguments}}
    messages += [said, {"role": "function", "name": call.name, "content": "minus 3 degrees"}]
    end = api.chat.completions.create(model="scripted", messages=messages, functions=functions)
    same("after the function", end.choices[0].message.content, "It is cold.")


def allowed(api):
    """Of the tools of a chat the model is offered those that the choice allows."""
    messages = [{"role": "user", "content": "weather of Oslo"}]
    named = [{"type": "function", "function": {"name": "weather"}}]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named}}
    answer = api.chat.completions.create(model="scripted", messages=messages, tools=TOOLS, tool_choice=choice)
    same("allowed tools", answer.choices[0].message.tool_calls[0].function.name, "weather")
    named[0]["function"]["name"] = "other"
    other = lambda: api.chat.completions.create(model="scripted", messages=messages, tools=TOOLS, tool_choice=choice)
    fails("no allowed tool", openai.BadRequestError, "validation_error", other)


class Town(pydantic.BaseModel):
    name: str
    people: int


def parsed(api):
    messages = [{"role": "user", "content": "a town as an object"}]
    answer = api.chat.completions.parse(model="scripted", messages=messages, response_format=Town)
    same("parsed", answer.choices[0].message.parsed, Town(name="Oslo", people=700000))


def thoughts(api):
    """What the model thinks is beside the answer and no part of it."""
    messages = [{"role": "user", "content": "think first"}]
    message = api.chat.completions.create(model="scripted", messages=messages).choices[0].message
    same("answer after a thought", message.content, "yes")
    same("thought", message.model_extra.get("reasoning_content"), "Shall I? ")
    text, thought = "", ""
    for piece in api.chat.completions.create(model="scripted", messages=messages, stream=True):
        for choice in piece.choices:
            text += choice.delta.content or ""
            thought += choice.delta.model_extra.get("reasoning_content") or ""
    same("streamed answer after a thought", (thought, text), ("Shall I? ", "yes"))


async def at_once():
    """The client for asyncio: many questions on it at once, whole and streamed."""

    async def streamed_text(api):
        text = ""
        async for piece in await api.chat.completions.create(model="scripted", messages=HELLO, stream=True):
            text += "".join(choice.delta.content or "" for choice in piece.choices)
        return text

    async def whole_text(api):
        answer = await api.chat.completions.create(model="scripted", messages=HELLO)
        return answer.choices[0].message.content

    async with openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=30) as api:
        works = [work(api) for _ in range(4) for work in (streamed_text, whole_text)]
        same("at once", await asyncio.gather(*works), ["hello from near"] * len(works))


def models(api, held):
    listed = [model.id for model in api.models.list()]
    same("models", [model for model in ("scripted", OTHER) if model in listed], ["scripted", OTHER])
    same("order", listed, sorted(listed))
    same("models of a held key", [model.id for model in held.models.list()], ["scripted"])
    same("held", held.chat.completions.create(model="scripted", messages=HELLO).object, "chat.completion")
    other = lambda: held.chat.completions.create(model=OTHER, messages=HELLO)
    fails("another model", openai.PermissionDeniedError, "model_not_allowed", other)


def failures(api):
    create = api.chat.completions.create
    fails("no key", openai.AuthenticationError, "unauthorized", lambda: client("tg_wrong").models.list())
    fails("no messages", openai.BadRequestError, "validation_error", lambda: create(model="scripted", messages=[]))
    unknown = lambda: create(model="nobody-has-this", messages=HELLO)
    fails("unknown model", openai.NotFoundError, "model_not_found", unknown)
    flow = client(KEY, default_headers={"X-Flow": "nope"})
    away = lambda: flow.chat.completions.create(model="scripted", messages=HELLO)
    fails("no flow", openai.InternalServerError, "agent_unavailable", away)


def embeddings(api, held):
    """The client asks for base64 by itself, and reads it into numbers."""
    both = api.embeddings.create(model="lexical", input=["a lighthouse", "a lighthouse"])
    same("vectors", len(both.data), 2)
    same("the same text", both.data[0].embedding, both.data[1].embedding)
    same("length", len(both.data[0].embedding), 1024)
    plain = api.embeddings.create(model="default", input="a lighthouse", encoding_format="float")
    near = max(abs(one - other) for one, other in zip(plain.data[0].embedding, both.data[0].embedding))
    same("numbers are those of base64", near < 1e-6, True)
    same("model of vectors", plain.model, "lexical/1024")
    of_tokens = api.embeddings.create(model="default", input=[[15339, 1917]])
    same("vectors of tokens", len(of_tokens.data), 1)
    tokens = lambda: api.embeddings.create(model="default", input=[[1, -2]])
    fails("tokens", openai.BadRequestError, "validation_error", tokens)
    other = lambda: api.embeddings.create(model="nobody-has-this", input="a")
    fails("unknown embeddings model", openai.NotFoundError, "model_not_found", other)
    denied = lambda: held.embeddings.create(model="default", input="a")
    fails("vectors for a held key", openai.PermissionDeniedError, "forbidden", denied)


def responses(api):
    whole = api.responses.create(model="scripted", input="hello", instructions="be brief", max_output_tokens=9)
    same("response", (whole.output_text, whole.status), ("hello from near", "completed"))
    same("usage of a response", whole.usage.total_tokens, whole.usage.input_tokens + whole.usage.output_tokens)
    with api.responses.stream(model="scripted", input="hello") as events:
        kinds = [event.type for event in events]
        end = events.get_final_response()
    same("first and last event", (kinds[0], kinds[-1]), ("response.created", "response.completed"))
    same("streamed response", end.output_text, "hello from near")

    function = TOOLS[0]["function"]
    tools = [{"type": "function", **function}]
    called = api.responses.create(model="scripted", input="weather of Oslo", tools=tools)
    (call,) = [item for item in called.output if item.type == "function_call"]
    same("call of a response", (call.name, json.loads(call.arguments)), ("weather", {"city": "Oslo"}))
    items = [
        {"role": "user", "content": "weather of Oslo"},
        *[item.model_dump(exclude_none=True) for item in called.output],
        {"type": "function_call_output", "call_id": call.call_id, "output": "minus 3 degrees"},
    ]
    end = api.responses.create(model="scripted", input=items, tools=tools)
    same("response after the call", end.output_text, "It is cold.")

    parsed = api.responses.parse(model="scripted", input="a town as an object", text_format=Town)
    same("parsed response", parsed.output_parsed, Town(name="Oslo", people=700000))
    stored = lambda: api.responses.create(model="scripted", input="hello", previous_response_id="resp_1")
    fails("a stored response", openai.BadRequestError, "validation_error", stored)


def agents(api):
    """An agent of the system answers as a model does: it uses its own tool, and asks its model twice."""
    listed = [model.id for model in api.models.list()]
    same("agents are models", "agent/default" in listed, True)
    own = {"model": "agent/default", "messages": [{"role": "user", "content": "ask the calculator"}]}
    raw = api.chat.completions.with_raw_response.create(**own)
    same("sub-calls of an agent", raw.headers["spass-cost-sub-calls"], "2")
    answer = raw.parse()
    choice, used = answer.choices[0], answer.usage
    same("text of an agent", (choice.message.content.strip(), choice.finish_reason), ("It is 42.", "stop"))
    same("usage of an agent", 0 < used.completion_tokens < used.prompt_tokens < used.total_tokens, True)
    pieces = list(api.chat.completions.create(**own, stream=True, stream_options={"include_usage": True}))
    texts = [choice.delta.content or "" for piece in pieces for choice in piece.choices]
    same("streamed text of an agent", "".join(texts).strip(), "It is 42.")
    same("an agent streams", sum(map(bool, texts)) > 1, True)
    used = pieces[-1].usage
    same("streamed usage of an agent", 0 < used.completion_tokens < used.prompt_tokens < used.total_tokens, True)
    tools = lambda: api.chat.completions.create(**own, tools=TOOLS)
    fails("tools for an agent", openai.BadRequestError, "validation_error", tools)
    unknown = lambda: api.chat.completions.create(model="agent/nobody", messages=HELLO)
    fails("unknown agent", openai.NotFoundError, "model_not_found", unknown)


def main():
    api, held = client(KEY), client(HELD)
    for work in (lambda: whole(api), lambda: streamed(api), lambda: models(api, held), lambda: failures(api),
                 lambda: pictured(api), lambda: tools(api), lambda: older(api), lambda: allowed(api), lambda: parsed(api), lambda: thoughts(api), lambda: asyncio.run(at_once()),
                 lambda: embeddings(api, held), lambda: responses(api), lambda: agents(api),
                 lambda: cut(api), lambda: failover(api)):
        try:
            work()
        except Exception:
            WRONG.append(traceback.format_exc())
    print(json.dumps({"wrong": WRONG}))


main()

"""Uses frameworks that ask the OpenAI API, unmodified, and looks at what they give: langchain-openai and openai-agents.

Arguments: base URL with `/v1`, a key that may ask for any model, a key that is held to `scripted`, a second model that the
system has. Prints what was wrong.
"""

import asyncio
import json
import sys
import traceback

import openai
import pydantic
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

URL, KEY, HELD, OTHER = sys.argv[1:]
WRONG = []


def same(what, found, wanted):
    if found != wanted:
        WRONG.append(f"{what}: {found!r} and not {wanted!r}")


class Town(pydantic.BaseModel):
    """A town."""

    name: str
    people: int


@tool
def weather(city: str) -> str:
    """Tells the weather of a city"""
    return "minus 3 degrees"


def chat(key=KEY, model="scripted", **more):
    return ChatOpenAI(model=model, base_url=URL, api_key=key, max_retries=0, timeout=30, **more)


def langchain():
    answer = chat().invoke([("system", "be brief"), ("user", "hello")])
    same("text", answer.content, "hello from near")
    same("usage", answer.usage_metadata["total_tokens"] > 0, True)
    pieces = [piece for piece in chat(stream_usage=True).stream("hello")]
    same("streamed text", "".join(piece.content for piece in pieces), "hello from near")
    same("streamed usage", any(piece.usage_metadata for piece in pieces), True)

    own = chat(model="agent/default", stream_usage=True)
    ran = own.invoke("ask the calculator")
    same("text of an agent", ran.content.strip(), "It is 42.")
    pieces = list(own.stream("ask the calculator"))
    same("streamed text of an agent", "".join(piece.content for piece in pieces).strip(), "It is 42.")
    same("usage of an agent", ran.usage_metadata["output_tokens"] > 0, True)
    same("streamed usage of an agent", any(piece.usage_metadata for piece in pieces), True)

    able = chat().bind_tools([weather])
    question = HumanMessage("weather of Oslo")
    called = able.invoke([question])
    same("calls", [(call["name"], call["args"]) for call in called.tool_calls], [("weather", {"city": "Oslo"})])
    result = ToolMessage("minus 3 degrees", tool_call_id=called.tool_calls[0]["id"])
    same("after the call", able.invoke([question, called, result]).content, "It is cold.")

    for method in ("json_schema", "json_mode"):
        town = chat().with_structured_output(Town, method=method).invoke("a town as an object in json")
        same(f"parsed by {method}", town, Town(name="Oslo", people=700000))
    whole = chat(use_responses_api=True).invoke("hello")
    same("text of a response", whole.text if isinstance(whole.text, str) else whole.text(), "hello from near")
    vectors = OpenAIEmbeddings(model="lexical", base_url=URL, api_key=KEY, check_embedding_ctx_length=False)
    same("vectors", [len(vector) for vector in vectors.embed_documents(["a", "b"])], [1024, 1024])
    try:
        chat(HELD, OTHER).invoke("hello")
    except openai.PermissionDeniedError as error:
        same("another model", error.code, "model_not_allowed")
    else:
        WRONG.append("another model: does not fail")


@function_tool(name_override="weather")
def told(city: str) -> str:
    """Tells the weather of a city"""
    return "minus 3 degrees"


async def agents():
    set_tracing_disabled(True)
    async with openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=30) as api:
        for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
            model = kind(model="scripted", openai_client=api)
            agent = Agent(name="a", instructions="be brief", model=model, tools=[told])
            what = kind.__name__
            plain = await Runner.run(agent, "hello")
            same(f"{what}: text", plain.final_output, "hello from near")
            used = await Runner.run(agent, "weather of Oslo")
            same(f"{what}: after a call", used.final_output, "It is cold.")
            streamed = Runner.run_streamed(agent, "weather of Oslo")
            async for _event in streamed.stream_events():
                pass
            same(f"{what}: streamed", streamed.final_output, "It is cold.")
            ours = Agent(name="o", instructions="be brief", model=kind(model="agent/default", openai_client=api))
            run = await Runner.run(ours, "ask the calculator")
            same(f"{what}: text of an agent", run.final_output.strip(), "It is 42.")
            same(f"{what}: usage of an agent", run.context_wrapper.usage.total_tokens > 0, True)
            run = Runner.run_streamed(ours, "ask the calculator")
            async for _event in run.stream_events():
                pass
            same(f"{what}: streamed text of an agent", run.final_output.strip(), "It is 42.")
            typed = Agent(name="t", instructions="be brief", model=model, output_type=Town)
            town = await Runner.run(typed, "a town as an object")
            same(f"{what}: typed", town.final_output, Town(name="Oslo", people=700000))


def main():
    for work in (langchain, lambda: asyncio.run(agents())):
        try:
            work()
        except Exception:
            WRONG.append(traceback.format_exc())
    print(json.dumps({"wrong": WRONG}))


main()

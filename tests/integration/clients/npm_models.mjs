// Uses the official clients of the OpenAI and Anthropic APIs from npm, unmodified, and looks at what they give.
// Usage: node npm_models.mjs <base URL without /v1> <key> <key that is held to `scripted`> <second model>, with the folder of
// the packages as MODULES. Prints what was wrong.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [url, key, held, other] = process.argv.slice(2);
const packages = createRequire(join(process.env.MODULES, "nothing.js"));
const load = async (name) => import(pathToFileURL(packages.resolve(name)).href);
const { default: OpenAI } = await load("openai");
const { default: Anthropic } = await load("@anthropic-ai/sdk");

const wrong = [];
const same = (what, found, wanted) => {
  const [one, two] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (one !== two) wrong.push(`${what}: ${one} and not ${two}`);
};
const step = async (name, work) => {
  try {
    await work();
  } catch (error) {
    wrong.push(`${name}: ${error?.stack ?? error}`);
  }
};
const fails = async (what, kind, work) => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof kind)) wrong.push(`${what}: ${error}`);
    return error;
  }
  wrong.push(`${what}: does not fail`);
  return {};
};

const options = { maxRetries: 0, timeout: 30_000 };
const openai = (apiKey) => new OpenAI({ baseURL: `${url}v1`, apiKey, ...options });
const hello = [{ role: "user", content: "hello" }];
const weather = [{ role: "user", content: "weather of Oslo" }];
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
// The agent of the system, which uses its own tool.
const agent = { model: "agent/default", messages: [{ role: "user", content: "ask the calculator" }] };
const about = { name: "weather", description: "Tells the weather of a city" };

await step("openai chats", async () => {
  const api = openai(key);
  const whole = await api.chat.completions.create({ model: "scripted", messages: hello });
  same("text", whole.choices[0].message.content, "hello from near");
  same("total", whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
  const pieces = await api.chat.completions.create({
    model: "scripted", messages: hello, stream: true, stream_options: { include_usage: true },
  });
  let [text, used] = ["", 0];
  for await (const piece of pieces) {
    text += piece.choices[0]?.delta?.content ?? "";
    used = piece.usage?.total_tokens ?? used;
  }
  same("streamed text", text, "hello from near");
  same("streamed usage", used > 0, true);

  const tools = [{ type: "function", function: { ...about, parameters } }];
  const called = await api.chat.completions.create({ model: "scripted", messages: weather, tools });
  const [call] = called.choices[0].message.tool_calls;
  same("call", [call.function.name, JSON.parse(call.function.arguments)], ["weather", { city: "Oslo" }]);
  const result = { role: "tool", tool_call_id: call.id, content: "minus 3 degrees" };
  const messages = [...weather, called.choices[0].message, result];
  const end = await api.chat.completions.create({ model: "scripted", messages, tools });
  same("after the call", end.choices[0].message.content, "It is cold.");

  const asked = await api.chat.completions.create(agent);
  same("text of an agent", asked.choices[0].message.content.trim(), "It is 42.");
  const parts = await api.chat.completions.create({ ...agent, stream: true, stream_options: { include_usage: true } });
  let [answer, usage] = ["", null];
  for await (const part of parts) {
    answer += part.choices[0]?.delta?.content ?? "";
    usage = part.usage ?? usage;
  }
  same("streamed text of an agent", answer.trim(), "It is 42.");
  same("usage of an agent", [asked.usage.completion_tokens > 0, usage?.completion_tokens > 0], [true, true]);

  const models = [];
  for await (const model of api.models.list()) models.push(model.id);
  same("models", [models.includes("scripted"), models.includes(other)], [true, true]);
});

await step("openai responses", async () => {
  const api = openai(key);
  const whole = await api.responses.create({ model: "scripted", input: "hello" });
  same("response", [whole.output_text, whole.status], ["hello from near", "completed"]);
  const kinds = [];
  const events = await api.responses.create({ model: "scripted", input: "hello", stream: true });
  for await (const event of events) kinds.push(event.type);
  same("events", [kinds[0], kinds.at(-1)], ["response.created", "response.completed"]);
  const vectors = await api.embeddings.create({ model: "lexical", input: ["a", "b"] });
  same("vectors", vectors.data.map((one) => one.embedding.length), [1024, 1024]);
});

await step("openai failures", async () => {
  const ask = (apiKey, model) => openai(apiKey).chat.completions.create({ model, messages: hello });
  const denied = await fails("another model", OpenAI.PermissionDeniedError, () => ask(held, other));
  same("its code", denied.code, "model_not_allowed");
  await fails("no key", OpenAI.AuthenticationError, () => ask("tg_wrong", "scripted"));
  await fails("unknown model", OpenAI.NotFoundError, () => ask(key, "nobody-has-this"));
});

await step("anthropic", async () => {
  const client = (apiKey) => new Anthropic({ baseURL: url.replace(/\/$/, ""), apiKey, ...options });
  const api = client(key);
  const own = { model: "scripted", max_tokens: 64 };
  const whole = await api.messages.create({ ...own, system: "be brief", messages: hello });
  same("text of a message", whole.content.map((block) => block.text), ["hello from near"]);
  same("reason of a message", whole.stop_reason, "end_turn");
  const streamed = await api.messages.stream({ ...own, messages: hello }).finalMessage();
  same("streamed message", streamed.content.map((block) => block.text), ["hello from near"]);
  const counted = await api.messages.countTokens({ model: "scripted", messages: hello });
  same("tokens", counted.input_tokens > 0, true);

  const tools = [{ ...about, input_schema: parameters }];
  const called = await api.messages.create({ ...own, messages: weather, tools });
  same("reason of a call", called.stop_reason, "tool_use");
  const call = called.content.find((block) => block.type === "tool_use");
  same("call of a message", [call.name, call.input], ["weather", { city: "Oslo" }]);
  const result = { type: "tool_result", tool_use_id: call.id, content: "minus 3 degrees" };
  const messages = [...weather, { role: "assistant", content: called.content }, { role: "user", content: [result] }];
  const end = await api.messages.create({ ...own, messages, tools });
  same("message after the call", end.content[0].text, "It is cold.");

  const ran = await api.messages.create({ ...own, ...agent });
  same("an agent's message", ran.content.map((block) => block.text.trim()), ["It is 42."]);
  const run = await api.messages.stream({ ...own, ...agent }).finalMessage();
  same("an agent's streamed message", run.content.map((block) => block.text.trim()), ["It is 42."]);
  same("usage of an agent's message", [ran.usage.output_tokens > 0, run.usage.output_tokens > 0], [true, true]);

  const ask = (apiKey, model) => client(apiKey).messages.create({ ...own, model, messages: hello });
  await fails("another model of a message", Anthropic.PermissionDeniedError, () => ask(held, other));
  await fails("no key of a message", Anthropic.AuthenticationError, () => ask("tg_wrong", "scripted"));
});

console.log(JSON.stringify({ wrong }));

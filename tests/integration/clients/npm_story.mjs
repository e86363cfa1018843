// Drives the unmodified npm client through a story and prints what its callers would see, as one JSON object.
// Usage: node npm_story.mjs <module directory> <socket URL> <token, may be empty> <nonce>
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [modules, url, token, nonce] = process.argv.slice(2);
const told = console.log;
console.log = () => {};
const entry = join(modules, "@trustgraph/client/dist/index.esm.js");
const { createTrustGraphSocket } = await import(pathToFileURL(entry).href);
const client = createTrustGraphSocket("somebody", token || undefined, url);

// A stream of (piece, complete, metadata) as text, with how often it was said to be complete.
const pieces = (start) =>
  new Promise((resolve, reject) => {
    let text = "", count = 0;
    start((piece, complete, metadata) => {
      text += piece;
      count += 1;
      if (complete) resolve({ text, count, metadata });
    }, reject);
  });

const seen = {};
const step = async (name, work) => {
  try {
    seen[name] = await work();
  } catch (error) {
    seen[name] = { failed: error?.message ?? error };
  }
};

const flow = client.flow("default");
await step("flows", () => client.flows().getFlows());
await step("blueprints", () => client.flows().getFlowBlueprints());
await step("blueprint", async () => Object.keys(await client.flows().getFlowBlueprint("everything")));
await step("system prompt", () => client.config().getSystemPrompt());
await step("prompts", () => client.config().getPrompts());
await step("put", () => client.config().putConfig([{ type: "notes", key: "n", value: JSON.stringify(nonce) }]));
await step("get", () => client.config().getConfig([{ type: "notes", key: "n" }]));
await step("values", () => client.config().getValues("notes"));
await step("delete", () => client.config().deleteConfig({ type: "notes", key: "n" }));
await step("started", () => client.flows().startFlow("from-npm", "everything", "by the npm client"));
await step("flow", () => client.flows().getFlow("from-npm"));
await step("stopped", () => client.flows().stopFlow("from-npm"));
await step("refused", () => client.flows().startFlow("x", "no-such-blueprint", "none"));
await step("completion", () => flow.textCompletion("be brief", "Say it in plain words."));
await step("completion stream", () => pieces((on, no) => flow.textCompletionStreaming("be brief", "Say it in plain words.", on, no)));
await step("prompt stream", () => pieces((on, no) => flow.promptStreaming("question", { question: "Say it in plain words." }, on, no)));
await step("agent", () =>
  new Promise((resolve, reject) => {
    const heard = { thought: "", observation: "", answer: "", explains: 0, ends: 0 };
    const hear = (kind) => (text, complete) => {
      heard[kind] += text;
      if (complete) heard.ends += 1;
    };
    flow
      .agent(`What? ${nonce}`, hear("thought"), hear("observation"), hear("answer"), reject, () => (heard.explains += 1))
      .then(() => resolve(heard));
  }));
await step("document", () =>
  client.librarian().loadDocument(
    Buffer.from(`text of ${nonce}`).toString("base64"), "text/plain", `title ${nonce}`, "", ["t"], `urn:doc:${nonce}`, []));
await step("documents", () => client.librarian().getDocuments());
await step("streamed document", () =>
  new Promise((resolve, reject) => {
    let bytes = "";
    client.librarian().streamDocument(`urn:doc:${nonce}`, (content, _index, _total, complete) => {
      bytes += Buffer.from(content ?? "", "base64").toString();
      if (complete) resolve(bytes);
    }, reject, 4);
  }));
await step("collection", () => client.collectionManagement().updateCollection("npm", "Npm", "by the client", ["a"]));
await step("collections", () => client.collectionManagement().listCollections(["a"]));
await step("triples", () => flow.triplesQuery(undefined, { t: "i", i: "https://trustgraph.ai/ns/query" }, undefined, 50, "default", "urn:graph:retrieval"));

console.log = told;
console.log(JSON.stringify(seen));
client.close();
process.exit(0);

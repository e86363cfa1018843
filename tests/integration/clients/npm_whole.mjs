// Uses every public method of the unmodified npm client and looks at what it gives; `npm_story.mjs` has the agent in
// detail. Prints what was wrong, and which methods were neither used nor excused, as one JSON object.
// Usage: node npm_whole.mjs <module directory> <socket URL> <token>
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [modules, url, token] = process.argv.slice(2);
const told = console.log;
console.log = console.warn = console.error = () => {};
const entry = join(modules, "@trustgraph/client/dist/index.esm.js");
const { createTrustGraphSocket } = await import(pathToFileURL(entry).href);
const client = createTrustGraphSocket("somebody", token, url);

const parts = {
  base: client,
  librarian: client.librarian(),
  flows: client.flows(),
  flow: client.flow("default"),
  config: client.config(),
  knowledge: client.knowledge(),
  collections: client.collectionManagement(),
};
// Why a method is not called from here.
const EXCUSED = {
  "base.openSocket": "called by the client itself", "base.onMessage": "called by the socket", "base.onClose": "called by the socket",
  "base.onOpen": "called by the socket", "base.onError": "called by the socket", "base.scheduleReconnect": "called by the client itself",
  "base.reopen": "called by the client itself", "base.getNextId": "called by the client itself",
  "base.getConnectionState": "declared private", "base.notifyStateChange": "declared private",
  "base.librarian": "called above", "base.flows": "called above", "base.flow": "called above", "base.config": "called above",
  "base.knowledge": "called above", "base.collectionManagement": "called above", "base.close": "called at the end",
};
const names = (part) => Object.getOwnPropertyNames(Object.getPrototypeOf(part)).filter((name) => name !== "constructor");
const used = new Set();
for (const [of, part] of Object.entries(parts)) {
  for (const name of names(part)) {
    if (EXCUSED[`${of}.${name}`] || (of === "base" && name.startsWith("make"))) continue;
    const method = part[name];
    part[name] = (...args) => (used.add(`${of}.${name}`), method.apply(part, args));
  }
}

const wrong = [];
const check = (name, holds, seen) => holds || wrong.push(`${name}: ${JSON.stringify(seen)}`.slice(0, 600));
const same = (name, seen, wanted) => check(name, JSON.stringify(seen) === JSON.stringify(wanted), seen);
const step = async (name, work) => {
  try {
    await work();
  } catch (error) {
    wrong.push(`${name} failed: ${error?.message ?? JSON.stringify(error)}`);
  }
};
const until = async (name, ask, holds) => {
  let seen;
  for (let tries = 0; tries < 600; tries++) {
    seen = await Promise.resolve(ask()).catch((error) => error?.message ?? error);
    if (holds(seen)) return seen;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  check(name, false, seen);
  return seen;
};
const streamed = (start) =>
  new Promise((resolve, reject) => {
    let text = "", explains = 0;
    start((piece, complete) => ((text += piece), complete && resolve({ text, explains })), reject, () => (explains += 1));
  });
const base64 = (text) => Buffer.from(text).toString("base64");

const { librarian, flows, flow, config, knowledge, collections } = parts;
const TEXT =
  "The Harrowgate lantern is a lamp made of blue glass. The Harrowgate lantern was built by Ottoline Frask in 1887. " +
  "Ottoline Frask was a glassblower from Pellworth.\n";
const BUILT = "Who built the Harrowgate lantern?";
const ANSWER = "The Harrowgate lantern was built by Ottoline Frask in 1887 [1].";
const FRASK = "Who is Ottoline Frask?";
const SCHEMA = {
  name: "lamps", description: "Lamps",
  fields: [{ name: "id", type: "integer", primary_key: true }, { name: "maker", type: "string", indexed: true }],
};

await step("connection", async () => {
  const states = [];
  const leave = client.onConnectionStateChange((state) => states.push(state.status));
  await until("connection", () => states, () => ["connected", "authenticated"].includes(states.at(-1)));
  leave();
});
for (const [of, part] of [["config", config], ["flows", flows]]) {
  await step(`${of} configuration`, async () => {
    await part.putConfig([{ type: "notes", key: of, value: `"of ${of}"` }]);
    const got = await part.getConfig([{ type: "notes", key: of }]);
    check(`${of}.getConfig`, JSON.stringify(got).includes(`of ${of}`), got);
    const all = await part.getConfigAll();
    check(`${of}.getConfigAll`, all.config?.notes?.[of] !== undefined, Object.keys(all));
    await part.deleteConfig({ type: "notes", key: of });
    const gone = await part.getConfig([{ type: "notes", key: of }]);
    check(`${of}.deleteConfig`, !JSON.stringify(gone).includes(`of ${of}`), gone);
    check(`${of}.getPrompts`, JSON.stringify(await part.getPrompts()).includes("agent-react"), await part.getPrompts());
    check(`${of}.getPrompt`, JSON.stringify(await part.getPrompt("question")).includes("prompt"), await part.getPrompt("question"));
    check(`${of}.getSystemPrompt`, typeof (await part.getSystemPrompt()) === "string", await part.getSystemPrompt());
  });
}
await step("values", async () => {
  await config.putConfig([{ type: "schema", key: "lamps", value: JSON.stringify(SCHEMA) }]);
  check("config.list", JSON.stringify(await config.list("schema")).includes("lamps"), await config.list("schema"));
  check("config.getValues", JSON.stringify(await config.getValues("schema")).includes("maker"), await config.getValues("schema"));
  const costs = await config.getTokenCosts();
  check("config.getTokenCosts", costs[0]?.model?.startsWith("builtin") && costs[0].input_price === 0, costs);
});
await step("flows", async () => {
  same("getFlows", await flows.getFlows(), ["default"]);
  check("getFlowBlueprints", (await flows.getFlowBlueprints()).includes("structured"), await flows.getFlowBlueprints());
  const blueprint = await flows.getFlowBlueprint("structured");
  check("getFlowBlueprint", blueprint.interfaces?.agent !== undefined, blueprint);
  await config.putConfig([{ type: "flow-blueprint", key: "mine", value: JSON.stringify(blueprint) }]);
  await flows.startFlow("second", "mine", "another");
  same("getFlow", (await flows.getFlow("second")).description, "another");
  await flows.stopFlow("second");
  await flows.deleteFlowBlueprint("mine");
  check("deleteFlowBlueprint", !(await flows.getFlowBlueprints()).includes("mine"), await flows.getFlowBlueprints());
});
await step("uploads", async () => {
  const about = { id: "urn:doc:parts", time: 0, kind: "text/plain", title: "Parts", comments: "", metadata: [], tags: [], user: "somebody" };
  const size = 2 << 20;
  const begun = await librarian.beginUpload(about, 2 * size, size);
  check("listUploads", (await librarian.listUploads()).length === 1, await librarian.listUploads());
  await librarian.uploadChunk(begun["upload-id"], 0, base64("x".repeat(size)));
  const status = await librarian.getUploadStatus(begun["upload-id"]);
  same("getUploadStatus", status["missing-chunks"], [1]);
  await librarian.uploadChunk(begun["upload-id"], 1, base64("y".repeat(size)));
  await librarian.completeUpload(begun["upload-id"]);
  same("getDocumentMetadata", (await librarian.getDocumentMetadata("urn:doc:parts")).title, "Parts");
  await librarian.removeDocument("urn:doc:parts");
  same("removeDocument", await librarian.getDocuments(), []);
  const other = await librarian.beginUpload({ ...about, id: "urn:doc:none" }, 2 * size, size);
  await librarian.abortUpload(other["upload-id"]);
  same("abortUpload", await librarian.listUploads(), []);
});
await step("documents", async () => {
  await librarian.loadDocument(base64(TEXT), "text/plain", "Lantern", "about it", ["lamps"], "urn:doc:lantern", []);
  same("getDocuments", (await librarian.getDocuments()).map((one) => one.title), ["Lantern"]);
  const text = await streamed((on, no) =>
    librarian.streamDocument("urn:doc:lantern", (content, _at, _of, complete) => on(Buffer.from(content ?? "", "base64"), complete), no, 16));
  same("streamDocument", text.text, TEXT);
  await librarian.addProcessing("p1", "urn:doc:lantern", "default", "docs", ["first"]);
  same("getProcessing", (await librarian.getProcessing()).map((one) => [one.id, one.collection]), [["p1", "docs"]]);
  await flow.loadText(base64("The Wexley clock was built by Ada Thorn. Ada Thorn was a locksmith."), "urn:doc:clock");
  await flow.loadDocument(base64("%PDF-"), "urn:doc:bad");
});
await step("answers", async () => {
  check("textCompletion", (await flow.textCompletion("Be brief.", "Say nonce-n-1")) === "Say nonce-n-1", "");
  same("textCompletionStreaming", (await streamed((on, no) => flow.textCompletionStreaming("Be brief.", "Say nonce-n-2", on, no))).text, "Say nonce-n-2");
  await config.putConfig([{ type: "prompt", key: "template.mine", value: JSON.stringify({ prompt: "Say {{x}}.", "response-type": "text" }) }]);
  await until("promptStreaming", () => streamed((on, no) => flow.promptStreaming("mine", { x: "nonce-n-3" }, on, no)), (seen) => seen.text === "Say nonce-n-3.");
  await until("documentRag", () => flow.documentRag(BUILT, 10, "docs"), (text) => text === ANSWER);
  const explained = await streamed((on, no, explain) => flow.documentRagStreaming(BUILT, on, no, 10, "docs", explain));
  check("documentRagStreaming", explained.text === ANSWER && explained.explains > 2, explained);
  await until("graphRag", () => flow.graphRag(FRASK, { entityLimit: 50 }, "docs"), (text) => String(text).includes("glassblower from Pellworth [1]"));
  const graph = await streamed((on, no, explain) => flow.graphRagStreaming(FRASK, on, no, { entityLimit: 50 }, "docs", explain));
  check("graphRagStreaming", graph.text.includes("glassblower from Pellworth [1]") && graph.explains > 2, graph);
  let answer = "";
  await flow.agent(BUILT, () => {}, () => {}, (text) => (answer += text), (error) => wrong.push(`agent: ${error}`), undefined, "docs");
  check("agent", answer.includes("Ottoline Frask"), answer);
  await until("loadText", () => flow.documentRag("Who built the Wexley clock?"), (text) => String(text).includes("Ada Thorn"));
});
await step("queries", async () => {
  const vectors = await flow.embeddings(["Ottoline Frask", "b"]);
  same("embeddings", vectors.length, 2);
  const found = await flow.graphEmbeddingsQuery(vectors[0], 1, "docs");
  same("graphEmbeddingsQuery", found[0].entity, { t: "i", i: "http://trustgraph.ai/e/ottoline-frask" });
  const triples = await flow.triplesQuery({ t: "i", i: "http://trustgraph.ai/e/ottoline-frask" }, { t: "i", i: "http://trustgraph.ai/e/was-a" }, undefined, 5, "docs");
  same("triplesQuery", triples.map((one) => one.o), [{ t: "i", i: "http://trustgraph.ai/e/glassblower" }]);
  const http = url.replace(/^ws/, "http").replace("api/socket", "api/v1/flow/default/import/rows?workspace=default");
  const row = { metadata: { id: "urn:rows", metadata: [], collection: "docs" }, schema_name: "lamps", values: [{ id: "7", maker: "Frask" }] };
  await fetch(http, { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: JSON.stringify(row) + "\n" });
  const rows = await until("rowsQuery", () => flow.rowsQuery("{ lamps { id maker } }", "docs"), (seen) => JSON.stringify(seen).includes("Frask"));
  check("rowsQuery", JSON.stringify(rows).includes('{"id":7,"maker":"Frask"}'), rows);
  const matches = await until("rowEmbeddingsQuery", () => flow.rowEmbeddingsQuery(vectors[0], "lamps", "docs", undefined, 1), (seen) => seen?.length === 1);
  same("rowEmbeddingsQuery", matches[0].text, "Frask");
  same("nlpQuery", (await flow.nlpQuery("Which lamps are there?")).detected_schemas, ["lamps"]);
  const structured = await flow.structuredQuery("lamps with maker Frask", "docs");
  check("structuredQuery", JSON.stringify(structured).includes("Frask"), structured);
});
await step("cores", async () => {
  await until("getKnowledgeCores", () => knowledge.getKnowledgeCores(), (ids) => ids.includes?.("urn:doc:lantern"));
  const kinds = new Set();
  // It looks for the end where it never stands, and asks again after a while: the end is in the frame.
  let ended = false;
  await new Promise((resolve, reject) => {
    const got = knowledge.getKgCore("urn:doc:lantern", undefined, (frame, eos) => {
      Object.keys(frame.response).forEach((key) => kinds.add(key));
      ended ||= eos;
      if (frame.response.eos) resolve();
    });
    got.catch(reject);
  });
  check("getKgCore", !ended, "ends by itself");
  check("getKgCore", kinds.has("triples") && kinds.has("graph-embeddings"), [...kinds]);
  await knowledge.loadKgCore("urn:doc:lantern", "default", "cored");
  const triples = await flow.triplesQuery({ t: "i", i: "http://trustgraph.ai/e/ottoline-frask" }, undefined, undefined, 5, "cored");
  check("loadKgCore", triples.length > 0, triples);
  await knowledge.deleteKgCore("urn:doc:lantern");
  check("deleteKgCore", !(await knowledge.getKnowledgeCores()).includes("urn:doc:lantern"), "");
});
await step("collections", async () => {
  await collections.updateCollection("npm", "Npm", "by the client", ["a"]);
  check("listCollections", JSON.stringify(await collections.listCollections(["a"])).includes("by the client"), "");
  await collections.deleteCollection("npm");
  check("deleteCollection", !JSON.stringify(await collections.listCollections(["a"])).includes("by the client"), "");
});

const all = Object.entries(parts).flatMap(([of, part]) => names(part).map((name) => `${of}.${name}`));
const unused = all.filter((name) => !used.has(name) && !EXCUSED[name] && !name.startsWith("base.make"));
console.log = told;
console.log(JSON.stringify({ wrong, unused, needless: Object.keys(EXCUSED).filter((name) => !all.includes(name)) }));
client.close();
process.exit(0);

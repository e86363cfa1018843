// A client in TypeScript, with types that openapi-typescript makes from the description of the endpoints. The compiler
// holds that the main path is typed; the run prints what it saw as one JSON object.
// Usage: node story.ts <URL>
import createClient from "openapi-fetch";
import type { components, paths } from "./api.ts";

type Schemas = components["schemas"];
type IsAny<T> = 0 extends 1 & T ? true : false;
type NoAny<T extends false> = T;
// What would compile with anything at all is no type.
export type Typed = [
  NoAny<IsAny<Schemas["AgentReply"]["answer"]>>,
  NoAny<IsAny<Schemas["DocumentRagReply"]["response"]>>,
  NoAny<IsAny<Schemas["Citation"]["page"]>>,
  NoAny<IsAny<Schemas["FlowReply"]["flow-ids"]>>,
  NoAny<IsAny<Schemas["LibrarianRequest"]["document-metadata"]>>,
  NoAny<IsAny<Schemas["Processing"]["status"]>>,
  NoAny<IsAny<Schemas["Error"]["type"]>>,
];

const url = process.argv[2] ?? "";
const client = createClient<paths>({ baseUrl: url });

// A reply, once it is known not to be a failure.
function good<D>(data: D): Exclude<D, string | undefined | Schemas["Failed"]> {
  if (data === undefined || typeof data !== "object" || data === null || "error" in data) {
    throw new Error(JSON.stringify(data));
  }
  return data as Exclude<D, string | undefined | Schemas["Failed"]>;
}

const flows = good((await client.POST("/api/v1/flow", { body: { operation: "list-flows" } })).data);
const ids: string[] = flows["flow-ids"];

const document: Schemas["DocumentMetadata"] = { id: "urn:typed:ts", kind: "text/plain", title: "The valley" };
const content = Buffer.from("The Brennick clock of the valley was built by Ilse Maartens in 1731.").toString("base64");
good((await client.POST("/api/v1/librarian", { body: { operation: "add-document", "document-metadata": document, content } })).data);
const flow = ids[0] ?? "";
good(
  (
    await client.POST("/api/v1/librarian", {
      body: {
        operation: "add-processing",
        "processing-metadata": { id: "urn:typed:ts:p", "document-id": "urn:typed:ts", flow, collection: "typed-ts" },
      },
    })
  ).data,
);
let status: string | undefined;
for (let n = 0; n < 600 && status !== "complete"; n += 1) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  const listed = good((await client.POST("/api/v1/librarian", { body: { operation: "list-processing" } })).data);
  status = listed["processing-metadatas"].find((one) => one.id === "urn:typed:ts:p")?.status;
}

const at = { params: { path: { flow } } };
const query = "Who built the Brennick clock?";
const answered = await client.POST("/api/v1/flow/{flow}/service/document-rag", {
  ...at,
  body: { query, collection: "typed-ts", "doc-limit": 5 },
});
const rag = good(answered.data);
const asked = await client.POST("/api/v1/flow/{flow}/service/agent", { ...at, body: { question: query, collection: "typed-ts" } });
const agent = good(asked.data);

// @ts-expect-error: what the service does not know is no key of its request.
const wrong: Schemas["DocumentRagRequest"] = { query, "doc-limits": 5 };
const warned = good((await client.POST("/api/v1/flow/{flow}/service/document-rag", { ...at, body: wrong })).data);

// A number, a page and words, each of its type.
const cited = (citations: Schemas["Citation"][] | undefined) =>
  (citations ?? []).map((one) => ({ n: one.n + 0, title: one.title.trim(), page: one.page ?? null, text: one.text.trim() }));

const refused = await client.POST("/api/v1/flow/{flow}/service/agent", {
  params: { path: { flow: "nowhere" } },
  body: { question: query },
  headers: { "X-Error-Status": "true" },
});
console.log(
  JSON.stringify({
    flows: ids,
    status: status ?? null,
    rag: { answer: rag.response ?? "", citations: cited(rag.citations) },
    agent: { answer: agent.answer ?? "", citations: cited(agent.citations) },
    warnings: warned.warnings ?? [],
    refused: refused.response.status,
  }),
);

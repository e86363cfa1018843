// What the page asks of the services, in their words.
import { collection, connection, flow } from "./session.js";
import { list, object, text, type Json, type Triple } from "./wire.js";

const ask = (service: string, request: Json): Promise<Json> => connection.ask({ service, request });

const inFlow = (service: string, request: Json): Promise<Json> =>
  connection.ask({ service, request, flow: flow.value });

/** One look at one thing. */
export interface Check {
  name: string;
  ok: boolean;
  detail: string;
  advice: string;
}

const check = (name: string, ok: boolean, detail: string, advice = ""): Check => ({ name, ok, detail, advice });

/** The checks of `tg doctor`: ours, then the server's. */
export const doctor = async (): Promise<Check[]> => {
  const [known, ready, vectors, served] = await Promise.all([caller(), readiness(), embeddings(), flowDoctor()]);
  const reached = check("gateway reachable", true, location.origin);
  return [reached, known, ready, ...vectors, ...served];
};

const caller = async (): Promise<Check> => {
  try {
    const user = object(await ask("iam", { operation: "whoami" }), "user");
    return check("token accepted", true, text(user, "username") || "anonymous");
  } catch (error) {
    return check("token accepted", false, String((error as Error).message), "sign in with another key");
  }
};

const readiness = async (): Promise<Check> => {
  const advice = "`tg show-flows`, then `tg why` for the flow";
  try {
    const answer = await fetch("/health/ready");
    const said = (await answer.json()) as Json;
    const missing = list<string>(said, "missing").join(", ");
    return check("default flow ready", answer.ok, answer.ok ? "GET /health/ready is 200" : missing, advice);
  } catch {
    return check("default flow ready", false, "the gateway does not answer", advice);
  }
};

const embeddings = async (): Promise<Check[]> => {
  try {
    const model = text(await inFlow("embeddings", { texts: [] }), "model");
    const detail = model.startsWith("lexical/")
      ? `${model}, the default: it finds shared words, not meaning. \`tg models pull\` fetches a model that does`
      : model || "answers, but does not name its model";
    return [check("embeddings", true, detail)];
  } catch (error) {
    return [check("embeddings", false, String((error as Error).message), "`tg show-processor-state` shows whether embeddings run")];
  }
};

const flowDoctor = async (): Promise<Check[]> => {
  try {
    const answer = await ask("flow", { operation: "doctor" });
    return list<Check>(object(answer, "doctor"), "checks");
  } catch (error) {
    return [check("flow service answers", false, String((error as Error).message), "`tg show-processor-state` shows what runs")];
  }
};

/** Names of the models that the provider offers. */
export const models = async (): Promise<string[]> =>
  list(await inFlow("text-completion", { operation: "list-models" }), "models").map((one) => text(one, "id"));

/** A flow. */
export interface Flow {
  id: string;
  description: string;
  blueprint: string;
  parameters: [string, string][];
  interfaces: string[];
}

export const flowIds = async (): Promise<string[]> => list<string>(await ask("flow", { operation: "list-flows" }), "flow-ids");

export const flowOf = async (id: string): Promise<Flow> => {
  const answer = await ask("flow", { operation: "get-flow", "flow-id": id });
  const record = JSON.parse(text(answer, "flow") || "{}") as Json;
  const parameters = Object.entries(object(answer, "parameters")).map(([key, value]): [string, string] => [key, String(value)]);
  return {
    id,
    description: text(answer, "description"),
    blueprint: text(record, "blueprint-name"),
    parameters: parameters.filter(([, value]) => value !== ""),
    interfaces: Object.keys(object(record, "interfaces")),
  };
};

/** What waits in a flow, and why. */
export const why = async (id: string): Promise<{ subject: string; state: string; detail: string }[]> => {
  const answer = await ask("flow", { operation: "why", "flow-id": id });
  const told = JSON.parse(text(answer, "flow") || "{}") as Json;
  return list<{ subject: string; state: string; detail: string }>(told, "why");
};

/** The text of a document, a page or a chunk; empty if it has none. */
export const content = async (id: string): Promise<string> => {
  const answer = await ask("librarian", { operation: "get-document-content", "document-id": id });
  const bytes = Uint8Array.from(atob(text(answer, "content")), (one) => one.charCodeAt(0));
  return new TextDecoder().decode(bytes);
};

/** The bytes of a document. They come in pieces, so that a large one comes, too. */
export const bytes = async (id: string): Promise<Blob> => {
  const pieces: BlobPart[] = [];
  const part = (one: Json): void => {
    pieces.push(Uint8Array.from(atob(text(one, "content")), (letter) => letter.charCodeAt(0)));
  };
  const request = { operation: "stream-document", "document-id": id, "chunk-size": PIECE };
  await connection.ask({ service: "librarian", request, part });
  return new Blob(pieces);
};

/** What is known of a document, a page or a chunk. */
export const metadata = async (id: string): Promise<Json> =>
  object(await ask("librarian", { operation: "get-document-metadata", "document-id": id }), "document-metadata");

/** A listing as far as it is read: the oldest entries come first. */
export interface Listed {
  entries: Json[];
  /** More follow, which are not here. */
  more: boolean;
}

/** Bytes of a piece of a document. */
const PIECE = 1 << 20;
/** Entries of a page of a listing, and pages that are read at most. */
const PAGE = 1000;
const PAGES = 50;

const pages = async (operation: string, key: string, service = "librarian"): Promise<Listed> => {
  const entries: Json[] = [];
  let after = "";
  for (let page = 0; page < PAGES; page++) {
    const answer = await ask(service, { operation, limit: PAGE, after });
    entries.push(...list(answer, key));
    after = text(answer, "next");
    if (!after) return { entries, more: false };
  }
  return { entries, more: true };
};

export const documents = (): Promise<Listed> => pages("list-documents", "document-metadatas");

export const processings = (): Promise<Listed> => pages("list-processing", "processing-metadatas");

/** Names of the collections that the workspace has. */
export const collections = async (): Promise<string[]> =>
  (await pages("list-collections", "collections", "collection-management")).entries.map((one) => text(one, "collection"));

/** How one processing stands. */
export const processing = async (id: string): Promise<Json | undefined> =>
  list(await ask("librarian", { operation: "processing-status", "processing-id": id }), "processing-metadatas")[0];

/** What a sentence rests on, as `tg verify-trace` judges it. */
export interface Sentence {
  text: string;
  support: "passages" | "misquoted" | "refusal" | "nothing";
  by: number[];
  misquoted?: string[];
}

/** What each sentence of an answer rests on. `passages`: what its numbers name, with the text where there is one. */
export const judged = async (answer: string, passages: { n: number; text: string }[]): Promise<Sentence[]> =>
  list<Sentence>(await ask("answers", { operation: "judge-answer", answer, passages }), "sentences");

/** An operation of the library. */
export const librarian = (request: Json): Promise<Json> => ask("librarian", request);

/** Triples of the graph of traces. */
export const retrieval = async (pattern: Json): Promise<Triple[]> => {
  const request = { g: "urn:graph:retrieval", collection: collection.value, ...pattern };
  return list<Triple>(await inFlow("triples", request), "response");
};

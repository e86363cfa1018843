// Agents of the workspace and their conversations, in the words of the service `sessions`.
import type { Following } from "./connection.js";
import { connection } from "./session.js";
import { list, object, text, type Json } from "./wire.js";

export interface Agent {
  id: string;
  name: string;
  description: string;
}

/** What a new agent can be made like. */
export interface Template {
  id: string;
  name: string;
  description: string;
}

export interface Conversation {
  id: string;
  title: string;
  created: string;
}

/** A message of a conversation. `failed`: the agent gave no answer, and the text says why. */
export interface Said {
  id: string;
  by: "user" | "agent";
  text: string;
  failed: boolean;
  /** Ids of the passages that the agent was given before it answered. */
  sources: string[];
}

/** A call of a tool. `done`: it has returned its result. */
export interface Call {
  id: string;
  tool: string;
  /** The arguments, a line each. */
  given: string;
  result: string;
  done: boolean;
}

/** What becomes of a turn while it is under way. */
export interface Hearing {
  /** A piece of the answer. */
  piece: (text: string) => void;
  /** The pieces so far were no answer yet. */
  reset: () => void;
  /** All calls of tools so far, the first one first. */
  calls: (all: Call[]) => void;
}

/** Entries of a page of a listing, and pages that are read at most. */
const PAGE = 200;
const PAGES = 10;

const sessions = (request: Json, following: Following = {}): Promise<Json> =>
  connection.ask({ service: "sessions", request, ...following });

const ask = async (operation: string, request: Json = {}): Promise<Json> =>
  object(await sessions({ operation, ...request }), "result");

const pages = async (operation: string, request: Json = {}): Promise<Json[]> => {
  const entries: Json[] = [];
  let cursor = "";
  for (let page = 0; page < PAGES; page++) {
    const answer = await ask(operation, { ...request, limit: PAGE, ...(cursor ? { cursor } : {}) });
    entries.push(...list(answer, "items"));
    cursor = text(answer, "nextCursor");
    if (!cursor) break;
  }
  return entries;
};

const agent = (one: Json): Agent => ({ id: text(one, "agentId"), name: text(one, "name"), description: text(one, "description") });

const conversation = (one: Json): Conversation => ({
  id: text(one, "conversationId"),
  title: text(one, "title"),
  created: text(one, "createdAt"),
});

/** Ids of passages, of a list of lists as text. */
const chunks = (listed: string): string[] => {
  try {
    const all: unknown = JSON.parse(listed || "[]");
    const first = (one: unknown): unknown => (Array.isArray(one) ? one[0] : undefined);
    return Array.isArray(all) ? all.map(first).filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
};

const said = (one: Json): Said => ({
  id: text(one, "messageId"),
  by: text(one, "role") === "user" ? "user" : "agent",
  text: text(one, "content"),
  failed: text(object(one, "metadata"), "finish_reason") === "error",
  sources: [...new Set(chunks(text(object(one, "metadata"), "context_chunks")))],
});

const given = ([key, value]: [string, unknown]): string => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`;

const call = (one: Json): Call => ({
  id: text(one, "callId"),
  tool: text(one, "toolName"),
  given: Object.entries(object(one, "args")).map(given).join("\n"),
  result: "",
  done: false,
});

/** The calls with a result of one of them. */
const returned = (all: Call[], one: Json): Call[] => {
  const at = all.findLastIndex((call) => call.id === text(one, "callId"));
  return all.map((call, place) => (place === at ? { ...call, result: text(one, "result"), done: true } : call));
};

export const agents = async (): Promise<Agent[]> => (await pages("list-agents")).map(agent);

export const templates = async (): Promise<Template[]> => {
  const all = list(await ask("list-templates"), "items");
  return all.map((one) => ({ id: text(one, "templateId"), name: text(one, "name"), description: text(one, "description") }));
};

export const fromTemplate = async (id: string): Promise<Agent> => agent(await ask("create-from-template", { templateId: id }));

/** The newest first. */
export const conversations = async (of: Agent): Promise<Conversation[]> =>
  (await pages("list-conversations", { agent_id: of.id })).map(conversation);

export const begin = async (of: Agent, title: string): Promise<Conversation> =>
  conversation(await ask("create-conversation", { agent_id: of.id, title }));

/** The oldest first. */
export const messages = async (of: Agent, id: string): Promise<Said[]> => {
  const all = await pages("list-conversation-messages", { agent_id: of.id, conversation_id: id });
  return all.filter((one) => ["user", "agent"].includes(text(one, "role"))).map(said);
};

/** Sends a message. The answer comes in pieces where the agent can do that. */
export const send = async (of: Agent, id: string, content: string, hearing: Hearing): Promise<Said> => {
  const request = { operation: "send-conversation-message", agent_id: of.id, conversation_id: id, content, streaming: true };
  let calls: Call[] = [];
  const part = (one: Json): void => {
    const data = object(one, "data");
    switch (one.event) {
      case "token":
        return hearing.piece(text(data, "delta"));
      case "token-reset":
        return hearing.reset();
      case "tool-call":
        return hearing.calls((calls = [...calls, call(data)]));
      case "tool-result":
        return hearing.calls((calls = returned(calls, data)));
    }
  };
  const last = await sessions(request, { part });
  const answer = object(object(last, "result"), "assistant");
  return said(text(answer, "messageId") ? answer : object(last, "data"));
};

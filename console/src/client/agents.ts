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

const said = (one: Json): Said => ({
  id: text(one, "messageId"),
  by: text(one, "role") === "user" ? "user" : "agent",
  text: text(one, "content"),
  failed: text(object(one, "metadata"), "finish_reason") === "error",
});

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

/** Sends a message. `piece`: text of the answer as it comes, where it comes in pieces. */
export const send = async (of: Agent, id: string, content: string, piece: (text: string) => void): Promise<Said> => {
  const request = { operation: "send-conversation-message", agent_id: of.id, conversation_id: id, content, streaming: true };
  const part = (one: Json): void => {
    if (one.event === "token") piece(text(object(one, "data"), "delta"));
  };
  const last = await sessions(request, { part });
  const answer = object(object(last, "result"), "assistant");
  return said(text(answer, "messageId") ? answer : object(last, "data"));
};

// Questions of this page and their answers while they come. What a part adds is decided here; nothing is drawn.
import { signal } from "@preact/signals";
import type { Following } from "../../client/connection.js";
import { follow } from "../../client/following.js";
import { kept } from "../../client/kept.js";
import { collection, connection, flow } from "../../client/session.js";
import { entity, type Entity } from "../../client/trace.js";
import { failure, list, plain, text, type Citation, type Json, type Triple } from "../../client/wire.js";
import { withPiece, type Message } from "./messages.js";
import { NONE, isOfSubagent, withMessage, withStep, type Subagents } from "./subagents.js";
import { verdict, type Verdict } from "./verdict.js";

/** Who answers. The supervisor is an agent that splits the question among subagents. */
export type Service = "agent" | "supervisor" | "document-rag" | "graph-rag";

export interface Turn {
  number: number;
  /** Empty of a run that was joined again, until its first part comes. */
  question: string;
  messages: Message[];
  subagents: Subagents;
  steps: Entity[];
  citations: Citation[];
  refused: boolean;
  trace: string;
  model: string;
  error: string;
  running: boolean;
  /** What each sentence of the whole answer rests on, once that is looked up. */
  verdict?: Verdict;
  /** Why that could not be. */
  unverified: string;
}

export const turns = signal<Turn[]>([]);

/** Questions that are kept on the page. */
const MOST = 50;
/** A run of the agent goes on for so long without this page, in seconds: it can be joined again until then. */
const GRACE = 120;
const running = new Map<number, AbortController>();
let next = 1;

const change = (number: number, how: (turn: Turn) => Turn): void => {
  turns.value = turns.value.map((turn) => (turn.number === number ? how(turn) : turn));
};

/** The answer's text. */
export const answerOf = (turn: Turn): string => {
  const said = turn.messages.filter((message) => message.kind === "answer");
  return said.map((message) => message.text).join("\n");
};

/** A turn with one more part of its answer. */
export const withPart = (turn: Turn, part: Json): Turn => {
  const kind = text(part, "message_type");
  const trace = text(part, "trace") || turn.trace;
  const model = text(part, "model") || turn.model;
  const told = { ...turn, trace, model, refused: turn.refused || part.refused === true };
  const cited = list<Citation>(part, "citations");
  if (cited.length > 0) told.citations = cited;
  if (kind === "explain") {
    const step = entity(text(part, "explain_id"), list<Triple>(part, "explain_triples"));
    if (!step) return told;
    told.subagents = withStep(turn.subagents, step);
    if (step.id === told.subagents.root && !told.question) told.question = plain(step.said.get("query")?.[0]);
    const known = turn.steps.some((one) => one.id === step.id);
    return known ? told : { ...told, steps: [...turn.steps, step] };
  }
  told.subagents = withMessage(turn.subagents, part);
  if (isOfSubagent(turn.subagents, part)) return told;
  const is = kind === "chunk" || kind === "end" || kind === "final-answer" || kind === "" ? "answer" : kind;
  return { ...told, messages: withPiece(turn.messages, is, part) };
};

const isAgent = (service: Service): boolean => service === "agent" || service === "supervisor";

const request = (question: string, service: Service): Json => {
  const asked: Json = isAgent(service) ? { question } : { query: question, explainable: true };
  if (service === "supervisor") asked.pattern = "supervisor";
  return { ...asked, collection: collection.value, streaming: true };
};

/** Asks; the answer comes into `turns`. */
export const ask = (question: string, service: Service): Promise<void> =>
  answer(question, undefined, (following) =>
    connection.ask({
      service: isAgent(service) ? "agent" : service,
      flow: flow.value,
      request: request(question, service),
      ...(isAgent(service) ? { onDisconnect: `grace=${GRACE}` } : {}),
      ...following,
    }),
  );

/** Joins the runs again that were under way when the page was left. Each says everything from its first part on. */
export const rejoin = (): void => {
  for (const run of kept()) void answer("", run, (following) => connection.resume({ run }, following));
};

/** Shows an answer from its first part to its last. `run`: the one that is joined again. */
const answer = async (question: string, run: string | undefined, begin: (following: Following) => Promise<Json>): Promise<void> => {
  const number = next++;
  const stop = new AbortController();
  running.set(number, stop);
  const turn: Turn = {
    number, question,
    messages: [], subagents: NONE, steps: [], citations: [],
    refused: false, trace: "", model: "", error: "", running: true, unverified: "",
  };
  turns.value = [turn, ...turns.value].slice(0, MOST);
  try {
    const part = (one: Json): void => change(number, (now) => withPart(now, one));
    await follow(begin, { part, signal: stop.signal }, run);
  } catch (why) {
    const error = failure(why);
    const told = error.kind === "cancelled" ? "Stopped." : error.message;
    change(number, (now) => ({ ...now, error: told }));
    // Nothing is known of it: it ended long ago, or is another user's.
    if (error.kind === "not-found") turns.value = turns.value.filter((one) => one.number !== number || one.question !== "");
  }
  running.delete(number);
  change(number, (now) => ({ ...now, running: false }));
  await verify(number);
};

/** Looks up what a whole answer rests on. */
const verify = async (number: number): Promise<void> => {
  const turn = turns.value.find((one) => one.number === number);
  if (!turn || turn.error || !answerOf(turn)) return;
  try {
    const found = await verdict(answerOf(turn), turn.citations, turn.refused);
    change(number, (now) => ({ ...now, verdict: found }));
  } catch (why) {
    const unverified = failure(why).message;
    change(number, (now) => ({ ...now, unverified }));
  }
};

/** Ends a question that is under way. */
export const stop = (number: number): void => running.get(number)?.abort();

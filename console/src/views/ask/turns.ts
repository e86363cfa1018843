// Questions of this page and their answers while they come. What a part adds is decided here; nothing is drawn.
import { signal } from "@preact/signals";
import { collection, connection, flow } from "../../client/session.js";
import { entity, type Entity } from "../../client/trace.js";
import { failure, list, text, type Citation, type Json, type Triple } from "../../client/wire.js";
import { verdict, type Verdict } from "./verdict.js";

/** Who answers. */
export type Service = "agent" | "document-rag" | "graph-rag";

/** One message of a run: what it thinks, does, sees or answers. */
export interface Message {
  id: string;
  kind: string;
  text: string;
  done: boolean;
}

export interface Turn {
  number: number;
  question: string;
  service: Service;
  messages: Message[];
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
    const known = turn.steps.some((one) => one.id === step?.id);
    return step && !known ? { ...told, steps: [...turn.steps, step] } : told;
  }
  const is = kind === "chunk" || kind === "end" || kind === "final-answer" || kind === "" ? "answer" : kind;
  const piece = text(part, "content") || text(part, "response");
  const done = part.end_of_message === true || part.end_of_stream === true;
  return { ...told, messages: withPiece(turn.messages, is, text(part, "message_id"), piece, done) };
};

/** Pieces of one message follow one another, by id or by kind; a new one begins after the end of the last. */
const withPiece = (messages: Message[], kind: string, id: string, piece: string, done: boolean): Message[] => {
  const at = messages.findLastIndex((one) => one.kind === kind && !one.done && (id === "" || one.id === id));
  const open = messages[at];
  if (!open) return piece ? [...messages, { id, kind, text: piece, done }] : messages;
  return messages.with(at, { ...open, text: open.text + piece, done });
};

const request = (question: string, service: Service): Json => {
  const asked = service === "agent" ? { question } : { query: question, explainable: true };
  return { ...asked, collection: collection.value, streaming: true };
};

/** Asks; the answer comes into `turns`. */
export const ask = async (question: string, service: Service): Promise<void> => {
  const number = next++;
  const stop = new AbortController();
  running.set(number, stop);
  const turn: Turn = {
    number, question, service,
    messages: [], steps: [], citations: [],
    refused: false, trace: "", model: "", error: "", running: true, unverified: "",
  };
  turns.value = [turn, ...turns.value].slice(0, MOST);
  try {
    await connection.ask({
      service,
      flow: flow.value,
      request: request(question, service),
      part: (part) => change(number, (now) => withPart(now, part)),
      signal: stop.signal,
    });
  } catch (why) {
    const error = failure(why);
    const told = error.kind === "cancelled" ? "Stopped." : error.message;
    change(number, (now) => ({ ...now, error: told }));
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

// The subagents of a run, as its parts describe them: who asked each, its goal, what it does, and its result. One stream
// brings the parts of all of them; the id of each part begins with the IRI of its run. Nothing is drawn here.
import type { Entity } from "../../client/trace.js";
import { plain, text, type Json } from "../../client/wire.js";
import { withPiece, type Message } from "./messages.js";

/** How a subagent stands. */
export type Standing = "thinking" | "using" | "done" | "failed";

export interface Subagent {
  /** IRI of its run. */
  id: string;
  /** IRI of the step that gave it its goal. */
  caller: string;
  goal: string;
  standing: Standing;
  /** Tools that it called and that have not returned, by the id of the call. */
  calls: Map<string, string>;
  messages: Message[];
  /** Document that holds its answer; empty: none yet. */
  answer: string;
  /** Why it failed, or was stopped. */
  why: string;
}

export interface Subagents {
  /** IRI of the run itself; empty: not known yet. */
  root: string;
  all: Subagent[];
  /** How many subagents a step announced, by its IRI. They need not begin at once. */
  announced: Map<string, number>;
  /** Goals in the order in which questions were split; subagents begin in any order. */
  goals: string[];
}

export const NONE: Subagents = { root: "", all: [], announced: new Map(), goals: [] };

/** The run that an id belongs to; empty: none of the agent. */
const runOf = (id: string): string => /^urn:trustgraph:agent:[^/]+/.exec(id)?.[0] ?? "";

const first = (step: Entity, name: string): string => plain(step.said.get(name)?.[0]);

const isOver = ({ standing }: Subagent): boolean => standing === "done" || standing === "failed";

/** Whether a message is a subagent's. */
export const isOfSubagent = ({ root }: Subagents, part: Json): boolean => {
  const run = runOf(text(part, "message_id"));
  return run !== "" && root !== "" && run !== root;
};

const change = (known: Subagents, id: string, how: (one: Subagent) => Subagent): Subagents => ({
  ...known,
  all: known.all.map((one) => (one.id === id ? how(one) : one)),
});

const announce = (known: Subagents, caller: string, count: number): Subagents => ({
  ...known,
  announced: new Map(known.announced).set(caller, count),
});

const add = (known: Subagents, id: string, caller: string, goal: string): Subagents => {
  if (known.all.some((one) => one.id === id)) return known;
  const begun: Subagent = { id, caller, goal, standing: "thinking", calls: new Map(), messages: [], answer: "", why: "" };
  return { ...known, all: [...known.all, begun] };
};

/** A step of the trace: a run began, was split or ended, or its parent has its result. */
export const withStep = (known: Subagents, step: Entity): Subagents => {
  const run = runOf(step.id);
  if (run === "") return known;
  if (step.id === run) {
    const caller = step.above.find((above) => runOf(above) !== "");
    if (caller) return add(known, run, caller, first(step, "query"));
    return known.root ? known : { ...known, root: run };
  }
  if (step.kinds.includes("Decomposition")) {
    const goals = (step.said.get("subagentGoal") ?? []).map(plain);
    return { ...announce(known, step.id, goals.length), goals: [...known.goals, ...goals] };
  }
  if (step.kinds.includes("Finding")) return found(known, run, step);
  if (step.kinds.includes("Conclusion")) return change(known, run, (one) => ended(one, step));
  return known;
};

/** Its own end comes first; the result that its parent takes over counts, and has the text. */
const ended = (one: Subagent, step: Entity): Subagent => {
  const failed = step.kinds.includes("Error");
  const answer = step.kinds.includes("Finding") ? first(step, "document") : "";
  return { ...one, standing: failed ? "failed" : "done", calls: new Map(), answer, why: first(step, "comment") || one.why };
};

const found = (known: Subagents, run: string, step: Entity): Subagents => {
  const goal = first(step, "subagentGoal");
  const caller = step.above.find((above) => runOf(above) === run) ?? run;
  const other = step.above.map(runOf).find((above) => above !== "" && above !== run);
  // A subagent that failed before its first step has no end of its own: its goal says which one it is.
  const waits = known.all.find((one) => one.caller === caller && one.goal === goal && !isOver(one));
  const id = other ?? waits?.id ?? step.id;
  return change(add(known, id, caller, goal), id, (one) => ended(one, step));
};

/** A message: a subagent thinks, calls a tool, or has what the tool returned. */
export const withMessage = (known: Subagents, part: Json): Subagents => {
  const [id, kind] = [text(part, "message_id"), text(part, "message_type")];
  const begins = /^(.+)\/progress\/0$/.exec(id)?.[1];
  const tasks = Number(/^Dispatching (\d+) /.exec(text(part, "content"))?.[1] ?? 0);
  const all = begins && tasks ? announce(known, begins, tasks) : known;
  if (!isOfSubagent(known, part)) return all;
  return change(all, runOf(id), (one) => {
    const calls = new Map(one.calls);
    const call = text(part, "call_id");
    if (kind === "action") calls.set(call, text(part, "tool_name"));
    if (kind === "observation") calls.delete(call);
    const standing = isOver(one) ? one.standing : calls.size > 0 ? "using" : "thinking";
    return { ...one, calls, standing, messages: withPiece(one.messages, kind, part) };
  });
};

/** In the order of the goals; those that no question was split into stay as they came. */
export const childrenOf = ({ all, goals }: Subagents, run: string): Subagent[] =>
  all.filter((one) => runOf(one.caller) === run).sort((left, right) => goals.indexOf(left.goal) - goals.indexOf(right.goal));

/** How many subagents of a run are over, how many of these failed, and how many there are. */
export const progress = (known: Subagents, run: string): { over: number; failed: number; of: number } => {
  const own = childrenOf(known, run);
  const callers = new Set([...own.map((one) => one.caller), ...known.announced.keys()].filter((caller) => runOf(caller) === run));
  const count = (caller: string): number =>
    Math.max(own.filter((one) => one.caller === caller).length, known.announced.get(caller) ?? 0);
  return {
    over: own.filter(isOver).length,
    failed: own.filter((one) => one.standing === "failed").length,
    of: [...callers].reduce((sum, caller) => sum + count(caller), 0),
  };
};

// The order in which the steps of a trace are told: what came of a step stands below it, before what came after it. The command
// tells them in the same order (`cli/src/commands/explain/trace.rs`).

/** What the order looks at. */
export interface Placed {
  id: string;
  kinds: string[];
  above: string[];
}

/** Sub-sessions before what came of them, the end last. */
const RANKS = new Map([
  ["PatternDecision", 0],
  ["Thought", 1],
  ["Guard", 1],
  ["Compaction", 1],
  ["Confirmation", 1],
  ["Plan", 2],
  ["Decomposition", 2],
  ["Question", 3],
  ["Finding", 4],
  ["Synthesis", 6],
  ["Conclusion", 7],
]);
const USUAL = 5;

const rank = (step: Placed): number => {
  const ranks = step.kinds.flatMap((kind) => RANKS.get(kind) ?? []);
  return ranks.length > 0 ? Math.min(...ranks) : USUAL;
};

/** The numbers in the last parts of an id, so that `i10` comes after `i9`. */
const numbers = (id: string): number[] => (id.slice(Math.max(id.indexOf("/"), 0)).match(/\d+/g) ?? []).map(Number);

const compared = (left: Placed, right: Placed): number => {
  const ranks = rank(left) - rank(right);
  if (ranks !== 0) return ranks;
  const [mine, others] = [numbers(left.id), numbers(right.id)];
  for (let at = 0; at < Math.max(mine.length, others.length); at += 1) {
    const differ = (mine[at] ?? -1) - (others[at] ?? -1);
    if (differ !== 0) return differ;
  }
  return left.id < right.id ? -1 : Number(left.id > right.id);
};

const isThought = (step: Placed): boolean => step.kinds.includes("Thought");

/** Each step once, the root first. What hangs on nothing that is there comes at the end. */
export const inOrder = <Step extends Placed>(root: string, steps: Step[]): Step[] => {
  const known = new Map(steps.map((step) => [step.id, step]));
  const below = new Map<string, Step[]>();
  for (const step of [...steps].sort(compared)) {
    for (const id of step.above) below.set(id, [...(below.get(id) ?? []), step]);
  }
  const told = new Set<Step>();
  // What is told next is on top: a stack, as a trace may be deep.
  const stack = [...steps.filter((step) => step.id !== root).sort(compared).reverse(), known.get(root)];
  while (stack.length > 0) {
    const step = stack.pop();
    if (!step || told.has(step)) continue;
    const own = below.get(step.id) ?? [];
    // What was thought led to what was done, though it is derived from it.
    for (const thought of own.filter(isThought)) told.add(thought);
    told.add(step);
    stack.push(...[...own].reverse());
  }
  return [...told];
};

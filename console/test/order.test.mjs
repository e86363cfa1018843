// Traces are told in order. Usage: node --test order.test.mjs
import { deepEqual } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { transform } from "../node_modules/esbuild/lib/main.js";

const source = readFileSync(join(import.meta.dirname, "../src/client/order.ts"), "utf8");
const { code } = await transform(source, { loader: "ts", format: "esm" });
const { inOrder } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

const ROOT = "urn:trustgraph:agent:1";

/** Steps by a table of id, kind and what each was derived from, in the order in which a breadth-first look finds them. */
const steps = (rows) => rows.map(([id, kind, ...above]) => ({ id, kinds: [kind], above }));
const told = (root, rows) => inOrder(root, steps(rows)).map((step) => step.id);

test("what a tool's question led to stands before the end, and thoughts before what they led to", () => {
  const own = (part) => `${ROOT}/${part}`;
  const rows = [
    [ROOT, "Question"],
    ["urn:x:pd", "PatternDecision", ROOT],
    [own("i1"), "Analysis", ROOT, "urn:x:pd"],
    [own("i1/observation"), "Observation", own("i1"), "urn:q:synthesis"],
    ["urn:x:thought", "Thought", own("i1")],
    ["urn:q:1", "Question", own("i1")],
    [own("final"), "Conclusion", own("i1/observation")],
    [own("final/thought"), "Thought", own("final")],
    ["urn:q:exploration", "Exploration", "urn:q:1"],
    ["urn:q:synthesis", "Synthesis", "urn:q:focus"],
    ["urn:q:focus", "Focus", "urn:q:exploration"],
    ["urn:q:chunk/1", "ChunkSelection", "urn:q:focus"],
  ];
  deepEqual(told(ROOT, rows), [
    ROOT,
    "urn:x:pd",
    "urn:x:thought",
    own("i1"),
    "urn:q:1",
    "urn:q:exploration",
    "urn:q:focus",
    "urn:q:chunk/1",
    "urn:q:synthesis",
    own("i1/observation"),
    own("final/thought"),
    own("final"),
  ]);
});

test("siblings are told by their numbers, and a circle ends", () => {
  const rows = [
    [ROOT, "Question", `${ROOT}/step/9`],
    [`${ROOT}/step/10`, "StepResult", ROOT],
    [`${ROOT}/step/9`, "StepResult", ROOT],
  ];
  deepEqual(told(ROOT, rows), [ROOT, `${ROOT}/step/9`, `${ROOT}/step/10`]);
});

test("nothing is left out, whatever it hangs on", () => {
  const rows = [[ROOT, "Question"], ["urn:b", "Focus", "urn:nowhere"], ["urn:a", "Thought", "urn:b"]];
  deepEqual(told(ROOT, rows), [ROOT, "urn:a", "urn:b"]);
  deepEqual(told("urn:gone", rows.slice(1)), ["urn:a", "urn:b"]);
});

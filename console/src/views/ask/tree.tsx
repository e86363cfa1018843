// The subagents of a run as a tree that fills while the run goes on. Each opens: its answer, and the steps that led to it.
import { useId, useState } from "preact/hooks";
import { content } from "../../client/services.js";
import { useLoaded } from "../../parts/loaded.js";
import { childrenOf, progress, type Subagent, type Subagents } from "./subagents.js";
import { Work } from "./work.js";

/** Mood and word of a subagent's state. `running`: the run goes on; without it, what is not over will not be. */
const state = ({ standing, calls, why }: Subagent, running: boolean): [mood: string, word: string] => {
  if (standing === "failed") return ["bad", "Failed"];
  if (standing === "done") return why ? ["warn", "Done, stopped early"] : ["good", "Done"];
  if (!running) return ["warn", "Not finished"];
  if (standing === "using") return ["wait", `Using ${[...new Set(calls.values())].join(", ")}`];
  return ["wait", "Thinking"];
};

const counted = ({ over, failed, of }: ReturnType<typeof progress>): string =>
  `${over} of ${of} ${of === 1 ? "subagent" : "subagents"} done${failed > 0 ? `, ${failed} failed` : ""}`;

const Answer = ({ document }: { document: string }) => {
  const { data, error } = useLoaded(() => content(document), document);
  if (error) return <p class="error">{error}</p>;
  return <p class="found" tabIndex={0}>{data ?? "Looking it up…"}</p>;
};

const Opened = ({ one }: { one: Subagent }) => (
  <>
    {one.why && <p class={one.standing === "failed" ? "error" : "muted"}>{one.why}</p>}
    {one.answer && (
      <>
        <p class="label">Answer</p>
        <Answer document={one.answer} />
      </>
    )}
    {one.messages.length > 0 ? (
      <ol aria-label="Steps">
        {one.messages.map((message, at) => (
          <Work key={at} message={message} />
        ))}
      </ol>
    ) : (
      <p class="muted">No steps yet.</p>
    )}
  </>
);

interface NodeProps {
  one: Subagent;
  subagents: Subagents;
  running: boolean;
}

const Node = ({ one, subagents, running }: NodeProps) => {
  const [open, setOpen] = useState(false);
  const id = useId();
  const [mood, word] = state(one, running);
  const below = progress(subagents, one.id);
  return (
    <li class="subagent">
      <button type="button" class="step" aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => setOpen(!open)}>
        <span class={`pill ${mood}`}>{word}</span> {one.goal || "Subagent"}
        {below.of > 0 && <span class="muted"> · {counted(below)}</span>}
      </button>
      {open && (
        <div class="opened" id={id}>
          <Opened one={one} />
        </div>
      )}
      <Branch of={one.id} subagents={subagents} running={running} />
    </li>
  );
};

const Branch = ({ of, subagents, running }: { of: string; subagents: Subagents; running: boolean }) => {
  const own = childrenOf(subagents, of);
  if (own.length === 0) return null;
  return (
    <ul class="branch">
      {own.map((one) => (
        <Node key={one.id} one={one} subagents={subagents} running={running} />
      ))}
    </ul>
  );
};

export const Tree = ({ subagents, running }: { subagents: Subagents; running: boolean }) => {
  const whole = progress(subagents, subagents.root);
  if (whole.of === 0) return null;
  return (
    <div class="subagents" role="group" aria-label="Subagents">
      <p role="status">{counted(whole)}</p>
      <Branch of={subagents.root} subagents={subagents} running={running} />
    </div>
  );
};

// One question: how it is being answered, the answer with its citations, and the steps behind it.
import { useEffect, useRef, useState } from "preact/hooks";
import { Passage } from "../../parts/passage.js";
import { Steps } from "../../parts/steps.js";
import type { Citation } from "../../client/wire.js";
import { Verified } from "./verified.js";
import { Tree } from "./tree.js";
import { answerOf, stop, type Turn as Shown } from "./turns.js";
import { Work } from "./work.js";

/** Numbers in brackets that are cited become buttons; all else is text. */
const Cited = ({ text, citations, open }: { text: string; citations: Citation[]; open: (one: Citation) => void }) => (
  <>
    {text.split(/\[(\d+)\]/).map((piece, at) => {
      if (at % 2 === 0) return piece;
      const cited = citations.find((one) => one.n === Number(piece));
      if (!cited) return `[${piece}]`;
      const where = `${cited.title || cited.document}${cited.page ? `, page ${cited.page}` : ""}`;
      return (
        <button key={at} type="button" class="cite" aria-label={`Citation ${piece}: ${where}`} title={where} onClick={() => open(cited)}>
          {piece}
        </button>
      );
    })}
  </>
);

const Sources = ({ citations, open }: { citations: Citation[]; open: (one: Citation) => void }) => (
  <ol class="sources" aria-label="Citations">
    {citations.map((one) => (
      <li key={one.n}>
        <button type="button" onClick={() => open(one)}>
          <span class="number">{one.n}</span>
          <span>
            <strong>{one.title || one.document || one.chunk}</strong>
            {one.page ? <span class="muted"> · page {one.page}</span> : null}
            <q>{one.text}</q>
          </span>
        </button>
      </li>
    ))}
  </ol>
);

/** What is under way is seen; when the answer has begun it folds away, unless the reader opened it. */
const Thinking = ({ turn }: { turn: Shown }) => {
  const work = turn.messages.filter((message) => message.kind !== "answer");
  const [open, setOpen] = useState(true);
  const answered = answerOf(turn) !== "";
  const touched = useRef(false);
  useEffect(() => {
    if (answered && !touched.current) setOpen(false);
  }, [answered]);
  if (work.length === 0) return null;
  const toggle = (event: Event) => {
    event.preventDefault();
    touched.current = true;
    setOpen(!open);
  };
  return (
    <details class="thinking" open={open}>
      <summary onClick={toggle}>
        {turn.running && !answered ? "Working" : "How it was worked out"} · {work.length} messages
      </summary>
      <ol>
        {work.map((message, at) => (
          <Work key={at} message={message} />
        ))}
      </ol>
    </details>
  );
};

export const Turn = ({ turn }: { turn: Shown }) => {
  const [cited, setCited] = useState<Citation>();
  const answer = answerOf(turn);
  const question = turn.question || "A question that is under way";
  const cites = turn.citations.length > 0;
  return (
    <article class="turn card" aria-busy={turn.running} aria-label={question}>
      <h2>{question}</h2>
      <Thinking turn={turn} />
      <Tree subagents={turn.subagents} running={turn.running} />
      <div class="answer" role="log" aria-live="polite" aria-label="Answer">
        {answer && (
          <p>
            <Cited text={answer} citations={turn.citations} open={setCited} />
          </p>
        )}
      </div>
      {turn.running && (
        <p class="running">
          <span class="dots" aria-hidden="true" /> <span role="status">{answer ? "Answering" : "Working"}</span>
          <button type="button" class="quiet" onClick={() => stop(turn.number)}>
            Stop
          </button>
        </p>
      )}
      {turn.error && (
        <p class="error" role="alert">
          {turn.error}
        </p>
      )}
      {cites && <Sources citations={turn.citations} open={setCited} />}
      {!turn.running && answer && !turn.error && <Verified verdict={turn.verdict} error={turn.unverified} />}
      {turn.steps.length > 0 && (
        <details class="steps">
          <summary>Trace · {turn.steps.length} steps</summary>
          <Steps steps={turn.steps} />
          {turn.trace && <p class="muted id">{turn.trace}</p>}
        </details>
      )}
      {cited && <Passage cited={cited} close={() => setCited(undefined)} />}
    </article>
  );
};

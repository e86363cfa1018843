// What was asked before, also elsewhere, and what was done to answer it: read from the graph.
import { useState } from "preact/hooks";
import { questions, steps, type Asked } from "../../client/trace.js";
import { useLoaded } from "../../parts/loaded.js";
import { Steps } from "../../parts/steps.js";

const Trace = ({ asked }: { asked: Asked }) => {
  const { data, error } = useLoaded(() => steps(asked.id), asked.id);
  return (
    <div class="opened">
      {error && <p class="error">{error}</p>}
      {data ? <Steps steps={data} /> : !error && <p>Looking…</p>}
      <p class="muted id">{asked.id}</p>
    </div>
  );
};

const Row = ({ asked }: { asked: Asked }) => {
  const [open, setOpen] = useState(false);
  const time = asked.time ? new Date(asked.time).toLocaleString() : "";
  return (
    <li>
      <div class="wide">
        <button type="button" class="step" aria-expanded={open} onClick={() => setOpen(!open)}>
          <strong>{asked.question}</strong> <span class="muted">{time}</span>
        </button>
        {open && <Trace asked={asked} />}
      </div>
    </li>
  );
};

export const Traces = () => {
  const { data, error, again } = useLoaded(() => questions(25));
  return (
    <>
      <div class="head">
        <h1>Traces</h1>
        <button type="button" class="quiet" onClick={() => void again()}>
          Look again
        </button>
      </div>
      <p role="status">{error || (!data ? "Looking…" : data.length === 0 ? "Nothing was asked yet." : "")}</p>
      <ul class="rows">
        {data?.map((asked) => (
          <Row key={asked.id} asked={asked} />
        ))}
      </ul>
    </>
  );
};

// Steps of a trace. Each opens: what was asked, done, seen and chosen, with the texts it refers to.
import { useState } from "preact/hooks";
import { content } from "../client/services.js";
import { entities, type Entity } from "../client/trace.js";
import { plain, type Term } from "../client/wire.js";
import { useLoaded } from "./loaded.js";

/** What is said as links to other entities, which are looked up when the step is opened. */
const LINKS = ["selectedChunk", "selectedEdge", "citation"];
/** Looked up of one step, at most. */
const MOST = 30;

/** `toolDurationMs` is `tool duration ms`. */
const words = (name: string): string => name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

const values = (terms: Term[]): string => terms.map(plain).join(", ");

/** The text of a document that a step names, if it is there. */
const Text = ({ id }: { id: string }) => {
  const { data, error } = useLoaded(() => content(id), id);
  if (error) return <span class="muted">{id}</span>;
  return data ? <blockquote class="passage">{data}</blockquote> : <span>…</span>;
};

const Facts = ({ step }: { step: Entity }) => (
  <dl>
    {[...step.said]
      .filter(([name]) => !LINKS.includes(name))
      .map(([name, terms]) => [
        <dt key={name}>{words(name)}</dt>,
        <dd key={`${name}=`}>{name === "document" ? <Text id={values(terms.slice(0, 1))} /> : values(terms)}</dd>,
      ])}
  </dl>
);

const Linked = ({ step }: { step: Entity }) => {
  const ids = LINKS.flatMap((name) => step.said.get(name) ?? []).map(plain).slice(0, MOST);
  const { data, error } = useLoaded(() => entities(ids), ids.join(" "));
  if (ids.length === 0) return null;
  if (error) return <p class="error">{error}</p>;
  return (
    <ul class="rows">
      {data?.map((one) => (
        <li key={one.id}>
          <div>
            <span class="label">{one.label}</span>
            <Facts step={one} />
          </div>
        </li>
      ))}
    </ul>
  );
};

const Step = ({ step }: { step: Entity }) => {
  const [open, setOpen] = useState(false);
  const said = step.said.get("query") ?? step.said.get("action") ?? step.said.get("concept");
  return (
    <li>
      <button type="button" class="step" aria-expanded={open} onClick={() => setOpen(!open)}>
        <strong>{step.label}</strong>
        {said && <span class="muted"> {values(said)}</span>}
      </button>
      {open && (
        <div class="opened">
          <Facts step={step} />
          <Linked step={step} />
          <p class="muted id">{step.id}</p>
        </div>
      )}
    </li>
  );
};

export const Steps = ({ steps }: { steps: Entity[] }) => (
  <ol class="trace">
    {steps.map((step) => (
      <Step key={step.id} step={step} />
    ))}
  </ol>
);

// One operation or message: what it takes and answers, with examples.
import { Inline } from "../parts/inline.js";
import { text, type Json } from "../client/wire.js";
import type { Entry, Example } from "./read.js";
import { Schema } from "./schema.js";

/** Paragraphs of a description. */
export const Prose = ({ text: whole }: { text: string }) => (
  <>
    {whole
      .split(/\n\s*\n/)
      .filter((part) => part.trim())
      .map((part, at) => (
        <p key={at}>
          <Inline text={part} />
        </p>
      ))}
  </>
);

const Examples = ({ of }: { of: Example[] }) => (
  <>
    {of.map((example) => (
      <details key={example.name}>
        <summary>Example: {example.name}</summary>
        <pre tabIndex={0}>{typeof example.value === "string" ? example.value : JSON.stringify(example.value, null, 2)}</pre>
      </details>
    ))}
  </>
);

const Parameter = ({ of }: { of: Json }) => [
  <dt>
    <code>{text(of, "name")}</code> <span class="muted">in {text(of, "in")}</span>
    {of.required === true && <span class="needed"> required</span>}
  </dt>,
  <dd>
    <Inline text={text(of, "description")} />
  </dd>,
];

/** What a reader of screens hears: a message of a socket with where it is sent, as others have such. */
const named = ({ badge, title, group }: Entry): string => (group.startsWith("/") ? `${badge} ${title}, ${group}` : `${badge} ${title}`);

export const Shown = ({ spec, entry }: { spec: Json; entry: Entry }) => (
  <section class="entry card" id={entry.id} aria-label={named(entry)}>
    <h3>
      <span class={`badge ${entry.badge.toLowerCase()}`}>{entry.badge}</span> <code>{entry.title}</code>
    </h3>
    <Prose text={entry.summary} />
    <Prose text={entry.description} />
    {entry.tables.map(([name, rows]) => (
      <details key={name}>
        <summary>{name}</summary>
        <ul class="plain">
          {rows.map((row) => (
            <li key={row}>{row}</li>
          ))}
        </ul>
      </details>
    ))}
    {entry.parameters.length > 0 && (
      <>
        <h4>Parameters</h4>
        <dl class="fields">
          {entry.parameters.map((one) => (
            <Parameter key={text(one, "name")} of={one} />
          ))}
        </dl>
      </>
    )}
    {entry.body.map((body) => (
      <div key={body.kind}>
        <h4>{body.kind === "payload" ? "Payload" : `Body, ${body.kind}`}</h4>
        <Schema spec={spec} schema={body.schema} />
        <Examples of={body.examples} />
      </div>
    ))}
    {entry.answers.length > 0 && (
      <>
        <h4>Answers</h4>
        <dl class="fields">
          {entry.answers.map((answer) => [
            <dt key={answer.status}>
              <code>{answer.status}</code> <span class="muted">{answer.kinds}</span>
            </dt>,
            <dd key={`${answer.status}=`}>
              <Inline text={answer.description} />
              <Examples of={answer.examples} />
            </dd>,
          ])}
        </dl>
      </>
    )}
  </section>
);

// One message of a conversation: its text, the tools that were called for it, and the passages that it was given.
import { useState } from "preact/hooks";
import type { Agent, Call, Said } from "../../client/agents.js";
import { source } from "../../client/sources.js";
import type { Citation } from "../../client/wire.js";
import { useLoaded } from "../../parts/loaded.js";
import { Passage } from "../../parts/passage.js";

const Calls = ({ all }: { all: Call[] }) => (
  <ol class="calls" aria-label="Calls of tools">
    {all.map((one, at) => (
      <li key={at} class="call work action">
        <span class="label">{one.tool}</span>
        {one.given && <p>{one.given}</p>}
        <p class="muted" tabIndex={0}>
          {one.done ? one.result : "…"}
        </p>
      </li>
    ))}
  </ol>
);

const Source = ({ n, chunk, open }: { n: number; chunk: string; open: (one: Citation) => void }) => {
  const { data, error } = useLoaded(() => source(n, chunk), chunk);
  return (
    <li>
      <button type="button" disabled={!data} onClick={() => data && open(data)}>
        <span class="number">{n}</span>
        {data ? <strong>{data.title || data.document}</strong> : <span>{error || "…"}</span>}
      </button>
    </li>
  );
};

/** What they are is looked up once somebody wants to see it. */
const Sources = ({ chunks }: { chunks: string[] }) => {
  const [wanted, setWanted] = useState(false);
  const [shown, show] = useState<Citation>();
  const toggle = (event: Event) => {
    event.preventDefault();
    setWanted(!wanted);
  };
  return (
    <details class="from" open={wanted}>
      <summary onClick={toggle}>Sources · {chunks.length}</summary>
      {wanted && (
        <ol class="sources" aria-label="Sources">
          {chunks.map((chunk, at) => (
            <Source key={chunk} n={at + 1} chunk={chunk} open={show} />
          ))}
        </ol>
      )}
      {shown && <Passage cited={shown} close={() => show(undefined)} />}
    </details>
  );
};

/** `calls`: of a turn that this page has seen; those of others are not listed. */
export const Message = ({ said, agent, calls }: { said: Said; agent: Agent; calls: Call[] | undefined }) => (
  <li class={`said ${said.by}${said.failed ? " failed" : ""}`}>
    <span class="label">{said.by === "user" ? "You" : agent.name}</span>
    <p>{said.text}</p>
    {calls && calls.length > 0 && <Calls all={calls} />}
    {said.sources.length > 0 && <Sources chunks={said.sources} />}
  </li>
);

// Both descriptions side by side with their contents and a filter.
import { useMemo, useState } from "preact/hooks";
import asyncapi from "spec:asyncapi";
import openapi from "spec:openapi";
import { object, text, type Json } from "../client/wire.js";
import { Prose, Shown } from "./entry.js";
import { messages, operations, type Entry } from "./read.js";

const grouped = (entries: Entry[]): [string, Entry[]][] => {
  const groups = new Map<string, Entry[]>();
  for (const entry of entries) groups.set(entry.group, [...(groups.get(entry.group) ?? []), entry]);
  return [...groups];
};

const Contents = ({ name, groups }: { name: string; groups: [string, Entry[]][] }) => (
  <>
    <h2>{name}</h2>
    {groups.map(([group, entries]) => (
      <section key={group}>
        <h3>{group}</h3>
        <ul>
          {entries.map((entry) => (
            <li key={entry.id}>
              <a href={`#${entry.id}`}>
                <span class={`badge ${entry.badge.toLowerCase()}`}>{entry.badge}</span> {entry.title.replace(/^\/api\/v1/, "")}
              </a>
            </li>
          ))}
        </ul>
      </section>
    ))}
  </>
);

const Description = ({ spec, name, file, groups }: { spec: Json; name: string; file: string; groups: [string, Entry[]][] }) => (
  <section aria-label={name}>
    <h2>{name}</h2>
    <p>
      <a href={`/${file}`}>{file}</a>
    </p>
    <Prose text={text(object(spec, "info"), "description")} />
    {groups.map(([group, entries]) => (
      <section key={group} aria-label={group}>
        {entries.map((entry) => (
          <Shown key={entry.id} spec={spec} entry={entry} />
        ))}
      </section>
    ))}
  </section>
);

export const Docs = () => {
  const [filter, setFilter] = useState("");
  const all = useMemo(() => ({ rest: operations(openapi), socket: messages(asyncapi) }), []);
  const wanted = filter.trim().toLowerCase();
  const fits = (entry: Entry) => `${entry.badge} ${entry.title} ${entry.summary} ${entry.id} ${entry.group}`.toLowerCase().includes(wanted);
  const rest = grouped(all.rest.filter(fits));
  const socket = grouped(all.socket.filter(fits));
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <img src="/assets/icon.svg" alt="" width="26" height="26" /> Threadgraph
        </a>
        <nav aria-label="Views">
          <a href="/">Console</a>
          <a href="/docs" aria-current="page">
            Docs
          </a>
        </nav>
      </header>
      <div class="docs">
        <nav class="contents" aria-label="Endpoints" tabIndex={0}>
          <input type="search" placeholder="Filter" aria-label="Filter endpoints" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          <Contents name="REST" groups={rest} />
          <Contents name="WebSocket" groups={socket} />
        </nav>
        <main id="main" tabIndex={-1}>
          <h1>Endpoints</h1>
          <Description spec={openapi} name="REST" file="openapi.yaml" groups={rest} />
          <Description spec={asyncapi} name="WebSocket" file="asyncapi.yaml" groups={socket} />
        </main>
      </div>
    </>
  );
};

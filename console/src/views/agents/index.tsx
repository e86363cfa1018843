// Agents of the workspace: which there are, new ones that are like a template, and the conversations with one of them.
import { useState } from "preact/hooks";
import { agents, fromTemplate, templates, type Agent, type Template } from "../../client/agents.js";
import { failure } from "../../client/wire.js";
import { useLoaded } from "../../parts/loaded.js";
import { Conversations } from "./conversations.js";

const Templates = ({ all, add }: { all: Template[]; add: (one: Template) => void }) => (
  <section aria-label="Templates">
    <h2>New agent</h2>
    <ul class="cards">
      {all.map((one) => (
        <li key={one.id} class="card">
          <h3>{one.name}</h3>
          <p>{one.description}</p>
          <button type="button" onClick={() => add(one)}>
            Add {one.name}
          </button>
        </li>
      ))}
    </ul>
  </section>
);

const load = async () => {
  const [known, offered] = await Promise.all([agents(), templates().catch(() => [])]);
  return { known, offered };
};

export const Agents = () => {
  const { data, error, again } = useLoaded(load);
  const [chosen, choose] = useState<Agent>();
  const [fault, setFault] = useState("");
  const add = async (one: Template) => {
    setFault("");
    try {
      choose(await fromTemplate(one.id));
    } catch (why) {
      setFault(failure(why).message);
    }
    await again();
  };
  if (chosen) return <Conversations agent={chosen} leave={() => choose(undefined)} />;
  const empty = data && data.known.length === 0 ? "The workspace has no agent." : "";
  return (
    <>
      <h1>Agents</h1>
      <p role="status">{fault || error || (data ? empty : "Looking…")}</p>
      <ul class="cards" aria-label="Agents">
        {data?.known.map((one) => (
          <li key={one.id} class="card">
            <h2>{one.name}</h2>
            <p>{one.description}</p>
            <button type="button" onClick={() => choose(one)}>
              Talk to {one.name}
            </button>
          </li>
        ))}
      </ul>
      {data && data.offered.length > 0 && <Templates all={data.offered} add={(one) => void add(one)} />}
    </>
  );
};

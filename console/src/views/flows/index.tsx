// The flows of the workspace: from which blueprint, with which parameters, and what waits in them.
import { flowIds, flowOf, why, type Flow } from "../../client/services.js";
import { useLoaded } from "../../parts/loaded.js";

type Row = Flow & { waits: { subject: string; state: string; detail: string }[] };

const load = async (): Promise<Row[]> => {
  const ids = await flowIds();
  return Promise.all(
    ids.map(async (id) => {
      const [flow, told] = await Promise.all([flowOf(id), why(id)]);
      const waits = told.filter((one) => !["attached", "running", "absent"].includes(one.state));
      return { ...flow, waits };
    }),
  );
};

const Card = ({ flow }: { flow: Row }) => (
  <li class="card">
    <h2>{flow.id}</h2>
    <p>{flow.description}</p>
    <dl>
      <dt>Blueprint</dt>
      <dd>{flow.blueprint}</dd>
      {flow.parameters.map(([key, value]) => [<dt key={key}>{key}</dt>, <dd key={`${key}=`}>{value}</dd>])}
    </dl>
    <p>{flow.waits.length === 0 ? "No message is waiting." : "What is waiting:"}</p>
    <ul class="plain">
      {flow.waits.map((one) => (
        <li key={one.subject}>
          <strong>{one.subject}</strong> {one.state} {one.detail}
        </li>
      ))}
    </ul>
    <details>
      <summary>{flow.interfaces.length} interfaces</summary>
      <ul class="chips">
        {flow.interfaces.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </details>
  </li>
);

export const Flows = () => {
  const { data, error } = useLoaded(load);
  return (
    <>
      <h1>Flows</h1>
      <p role="status">{error || (!data ? "Looking…" : data.length === 0 ? "No flow runs in this workspace." : "")}</p>
      <ul class="cards">
        {data?.map((flow) => (
          <Card key={flow.id} flow={flow} />
        ))}
      </ul>
    </>
  );
};

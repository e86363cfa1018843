// The question box, and below it what was asked, the newest first.
import { useState } from "preact/hooks";
import { Collections } from "../../parts/collections.js";
import { ask, turns, type Service } from "./turns.js";
import { Turn } from "./turn.js";

const SERVICES: [Service, string][] = [
  ["agent", "Agent: chooses its tools"],
  ["document-rag", "Documents: reads passages"],
  ["graph-rag", "Graph: follows facts"],
  ["supervisor", "Supervisor: splits the question"],
];

export const Ask = () => {
  const [question, setQuestion] = useState("");
  const [service, setService] = useState<Service>("agent");
  const submit = (event: Event) => {
    event.preventDefault();
    const asked = question.trim();
    if (!asked) return;
    setQuestion("");
    void ask(asked, service);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  return (
    <>
      <h1 class={turns.value.length > 0 ? "hidden" : ""}>What do you want to know?</h1>
      <form class="ask card" onSubmit={submit}>
        <label class="hidden" for="question">
          Question
        </label>
        <textarea
          id="question"
          rows={2}
          placeholder="Ask about your documents…"
          value={question}
          onInput={(event) => setQuestion(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <div class="bar">
          <label class="hidden" for="service">
            Who answers
          </label>
          <select id="service" value={service} onChange={(event) => setService(event.currentTarget.value as Service)}>
            {SERVICES.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
          <Collections id="searched" />
          <button type="submit">Ask</button>
        </div>
      </form>
      {turns.value.length === 0 && (
        <p class="muted hint">
          Answers quote your documents, with numbers that open the passage. The <a href="#/library">library</a> takes documents.
        </p>
      )}
      {turns.value.map((turn) => (
        <Turn key={turn.number} turn={turn} />
      ))}
    </>
  );
};

// One message of a run, as its reader sees it.
import type { Message } from "./messages.js";

const NAMES: Record<string, string> = { thought: "Thought", action: "Action", observation: "Observation", error: "Error" };

/** What an action does, for people: the tool and what it is given. */
const actionText = (whole: string): string => {
  try {
    const { name, arguments: given } = JSON.parse(whole) as { name: string; arguments: Record<string, unknown> };
    const lines = Object.entries(given).map(([key, value]) => `  ${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
    return [name, ...lines].join("\n");
  } catch {
    return whole;
  }
};

export const Work = ({ message }: { message: Message }) => (
  <li class={`work ${message.kind}`}>
    <span class="label">{NAMES[message.kind] ?? message.kind}</span>
    {message.kind === "observation" ? (
      <p tabIndex={0}>{message.text}</p>
    ) : (
      <p>{message.kind === "action" ? actionText(message.text) : message.text}</p>
    )}
  </li>
);

// The conversations with one agent, and the one that is open: what was said, and a box for what is said next.
import { useState } from "preact/hooks";
import { begin, conversations, messages, send, type Agent, type Call, type Said } from "../../client/agents.js";
import { failure } from "../../client/wire.js";
import { useLoaded } from "../../parts/loaded.js";
import { Message } from "./message.js";

/** Characters of the first message that name a conversation. */
const TITLE = 60;

/** A message that is not read back yet. */
const underWay = (by: Said["by"], text: string): Said => ({ id: by, by, text, failed: false, sources: [] });

interface Props {
  agent: Agent;
  leave: () => void;
}

export const Conversations = ({ agent, leave }: Props) => {
  const [open, setOpen] = useState("");
  const [asked, setAsked] = useState("");
  const [piece, setPiece] = useState("");
  const [calls, setCalls] = useState<Call[]>([]);
  // Calls of the turns that were seen here, by their answers.
  const [made, setMade] = useState<Record<string, Call[]>>({});
  const [draft, setDraft] = useState("");
  const [fault, setFault] = useState("");
  // What was read after the last message, and of which conversation.
  const [fresh, setFresh] = useState<{ of: string; all: Said[] }>();
  const listed = useLoaded(() => conversations(agent), agent.id);
  const told = useLoaded(() => (open ? messages(agent, open) : Promise.resolve([])), open);
  const talk = async (content: string) => {
    setAsked(content), setPiece(""), setCalls([]), setFault(""), setDraft("");
    let id = open;
    let called: Call[] = [];
    try {
      if (!id) {
        id = (await begin(agent, content.slice(0, TITLE))).id;
        setOpen(id);
      }
      const answer = await send(agent, id, content, {
        piece: (more) => setPiece((now) => now + more),
        reset: () => setPiece(""),
        calls: (all) => setCalls((called = all)),
      });
      setMade((before) => ({ ...before, [answer.id]: called }));
    } catch (why) {
      setFault(failure(why).message);
      setDraft(content);
    }
    const all = await (id ? messages(agent, id) : Promise.resolve([])).catch(() => undefined);
    if (all) setFresh({ of: id, all });
    setAsked("");
    await listed.again();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const content = draft.trim();
    if (content && !asked) void talk(content);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  // Until the message that is under way is read back, it stands below what was read.
  const all = (fresh?.of === open ? fresh.all : told.data) ?? [];
  const isRead = all.some((one, at) => at >= all.length - 2 && one.by === "user" && one.text === asked);
  return (
    <>
      <h1>{agent.name}</h1>
      <div class="bar">
        <button type="button" class="quiet" onClick={leave}>
          All agents
        </button>
        <label class="hidden" for="conversation">
          Conversation
        </label>
        <select id="conversation" value={open} disabled={asked !== ""} onChange={(event) => (setFresh(undefined), setOpen(event.currentTarget.value))}>
          <option value="">New conversation</option>
          {listed.data?.map((one) => (
            <option key={one.id} value={one.id}>
              {one.title || one.created}
            </option>
          ))}
        </select>
      </div>
      <p role="status">{fault || listed.error || told.error}</p>
      <ol class="conversation" aria-label="Messages" aria-busy={asked !== ""}>
        {all.map((one) => (
          <Message key={one.id} said={one} agent={agent} calls={made[one.id]} />
        ))}
        {asked && !isRead && <Message said={underWay("user", asked)} agent={agent} calls={[]} />}
        {asked && <Message said={underWay("agent", piece || "…")} agent={agent} calls={calls} />}
      </ol>
      <form class="ask card" onSubmit={submit}>
        <label class="hidden" for="message">
          Message
        </label>
        <textarea
          id="message"
          rows={2}
          placeholder={`Write to ${agent.name}…`}
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <div class="bar">
          <span />
          <button type="submit" disabled={asked !== ""}>
            Send
          </button>
        </div>
      </form>
    </>
  );
};

// The library: files dropped on it go in and are processed; below, what is in it and how its processing stands.
import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../../parts/loaded.js";
import { failure, list, text, type Json } from "../../client/wire.js";
import { Collections } from "../../parts/collections.js";
import { Drop } from "./drop.js";
import { kindName } from "./kind.js";
import { Opened } from "./opened.js";
import { Removal } from "./removal.js";
import { fill, look, open, place, process, retry, shelf, type Shelf } from "./shelf.js";
import { standing } from "./standing.js";
import { uploads, type Upload } from "./upload.js";

/** Pause between two looks at what is processed. */
const LOOK = 700;
/** Documents that are shown at first, and at each wish for more. */
const SHOWN = 100;

/** A button that changes something in the library; why that failed stands behind it. */
const Act = ({ word, of, act }: { word: string; of: string; act: () => Promise<unknown> }) => {
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const go = async () => {
    setBusy(true);
    setWrong(await act().then(() => "", (why: unknown) => failure(why).message));
    setBusy(false);
  };
  return (
    <>
      <button type="button" class="quiet" aria-label={`${word} ${of}`} disabled={busy} onClick={() => void go()}>
        {word}
      </button>
      {wrong && <p class="error">{wrong}</p>}
    </>
  );
};

const Run = ({ run, title }: { run: Json; title: string }) => {
  const { mood, word, part, of } = standing(run);
  const into = text(run, "collection");
  const troubles = [...new Set(list(run, "errors").map((error) => text(error, "message")))];
  return (
    <div class="run">
      <span class={`pill ${mood}`}>{word}</span>
      {into !== "default" && <span class="muted">in {into}</span>}
      {mood === "wait" && of > 0 && <progress value={part} max={of} aria-label={`${part} of ${of} records`} />}
      {troubles.slice(0, 3).map((trouble) => (
        <p key={trouble} class="error">
          {trouble}
        </p>
      ))}
      {text(run, "retry") && <Act word="Retry" of={title} act={() => retry(text(run, "id"))} />}
    </div>
  );
};

interface Rows {
  document: Json;
  runs: Json[];
  open: () => void;
  remove: () => void;
}

const titleOf = (document: Json): string => text(document, "title") || text(document, "id");

const Row = ({ document, runs, open, remove }: Rows) => (
  <li>
    <div class="wide">
      <strong>{titleOf(document)}</strong>
      <p class="muted id">
        {kindName(text(document, "kind"))} · {text(document, "comments") || text(document, "id")}
      </p>
    </div>
    {runs.length === 0 && (
      <div class="run">
        <span class="pill">not processed</span>
        <Act word="Process" of={titleOf(document)} act={() => process(text(document, "id"), place())} />
      </div>
    )}
    {runs.map((run) => (
      <Run key={text(run, "id")} run={run} title={titleOf(document)} />
    ))}
    <div class="acts">
      <button type="button" class="quiet" aria-label={`Open ${titleOf(document)}`} onClick={open}>
        Open
      </button>
      <button type="button" class="quiet" aria-label={`Delete ${titleOf(document)}`} onClick={remove}>
        Delete
      </button>
    </div>
  </li>
);

/** How a file on its way stands: in colour, and in a word. */
const MOODS: Record<Upload["state"], [string, string]> = {
  reading: ["wait", "reading"],
  sending: ["wait", "sending"],
  done: ["good", "added"],
  there: ["good", "already there"],
  failed: ["bad", "failed"],
};

const Sending = ({ upload }: { upload: Upload }) => (
  <li>
    <div class="wide">
      <strong>{upload.name}</strong> <span class="muted">{upload.about}</span>
      {upload.error && <p class="error">{upload.error}</p>}
    </div>
    {upload.state === "sending" && <progress value={upload.sent} max={upload.size} aria-label={`Sending ${upload.name}`} />}
    <span class={`pill ${MOODS[upload.state][0]}`}>{MOODS[upload.state][1]}</span>
  </li>
);

const holds = (document: Json, wanted: string): boolean =>
  `${text(document, "title")} ${text(document, "comments")}`.toLowerCase().includes(wanted);

/** What there is, and what is going on. */
const inWords = ({ documents, more }: Shelf, under: number): string => {
  const sum = documents.length;
  if (sum === 0) return "The library is empty.";
  const first = `${sum.toLocaleString("en")} ${sum === 1 ? "document" : "documents"}`;
  const beyond = more ? " are listed, the oldest; there are more" : "";
  const going = under === 0 ? "nothing is" : under === 1 ? "1 is" : `${under.toLocaleString("en")} are`;
  return `${first}${beyond}, ${going} being processed.`;
};

export const Library = () => {
  const { error } = useLoaded(fill);
  const [filter, setFilter] = useState("");
  const [most, setMost] = useState(SHOWN);
  const [wrong, setWrong] = useState("");
  const [opened, setOpened] = useState<Json>();
  const [doomed, setDoomed] = useState<Json>();
  const now = shelf.value;
  const under = now ? open(now).length : 0;
  useEffect(() => {
    if (under === 0) return;
    let timer = 0;
    let gone = false;
    const again = async () => {
      // A lost connection is said once, at the top.
      const told = await look().then(() => "", (why: unknown) => (failure(why).kind === "lost" ? "" : failure(why).message));
      if (gone) return;
      setWrong(told);
      timer = setTimeout(() => void again(), LOOK);
    };
    void again();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [under > 0]);
  const wanted = filter.trim().toLowerCase();
  const found = now?.documents.filter((document) => holds(document, wanted)) ?? [];
  const sum = now?.documents.length ?? 0;
  return (
    <>
      <div class="head">
        <h1>Library</h1>
        <Collections id="collection" />
      </div>
      <Drop />
      {uploads.value.length > 0 && (
        <section aria-label="Added now">
          <ul class="rows" aria-live="polite">
            {uploads.value.map((upload) => (
              <Sending key={upload.number} upload={upload} />
            ))}
          </ul>
        </section>
      )}
      <div class="head">
        <h2>Documents</h2>
        {sum > 8 && <input type="search" placeholder="Filter" aria-label="Filter documents" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />}
      </div>
      <p role="status">{error || wrong || (now ? inWords(now, under) : "Looking…")}</p>
      {sum > 0 && found.length === 0 && <p class="muted">No document matches “{filter.trim()}”.</p>}
      <ul class="rows documents" aria-label="Documents">
        {found.slice(0, most).map((document) => (
          <Row
            key={text(document, "id")}
            document={document}
            runs={now?.runs.get(text(document, "id")) ?? []}
            open={() => setOpened(document)}
            remove={() => setDoomed(document)}
          />
        ))}
      </ul>
      {opened && <Opened of={opened} close={() => setOpened(undefined)} />}
      {doomed && <Removal of={doomed} close={() => setDoomed(undefined)} />}
      {found.length > most && (
        <p>
          <button type="button" class="quiet" onClick={() => setMost(most + SHOWN)}>
            Show more
          </button>{" "}
          <span class="muted">
            {most.toLocaleString("en")} of {found.length.toLocaleString("en")}, the newest first
          </span>
        </p>
      )}
    </>
  );
};

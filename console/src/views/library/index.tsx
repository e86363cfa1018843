// The library: files dropped on it go in and are processed; below, what is in it and how its processing stands.
import { useEffect, useState } from "preact/hooks";
import { documents, processings } from "../../client/services.js";
import { useLoaded } from "../../parts/loaded.js";
import { list, text, type Json } from "../../client/wire.js";
import { Drop } from "./drop.js";
import { kindName } from "./kind.js";
import { standing } from "./standing.js";
import { uploads, type Upload } from "./upload.js";

/** Pause between two looks at what is processed. */
const LOOK = 700;

const load = async () => {
  const [found, runs] = await Promise.all([documents(), processings()]);
  return found.map((document) => {
    const id = text(document, "id");
    return { document, runs: runs.filter((run) => text(run, "document-id") === id) };
  });
};

const Run = ({ run }: { run: Json }) => {
  const { mood, word, part, of } = standing(run);
  const troubles = [...new Set(list(run, "errors").map((error) => text(error, "message")))];
  return (
    <div class="run">
      <span class={`pill ${mood}`}>{word}</span>
      {mood === "wait" && of > 0 && <progress value={part} max={of} aria-label={`${part} of ${of} records`} />}
      {troubles.slice(0, 3).map((trouble) => (
        <p key={trouble} class="error">
          {trouble}
        </p>
      ))}
    </div>
  );
};

const Row = ({ document, runs }: { document: Json; runs: Json[] }) => (
  <li>
    <div class="wide">
      <strong>{text(document, "title") || text(document, "id")}</strong>
      <p class="muted id">
        {kindName(text(document, "kind"))} · {text(document, "comments") || text(document, "id")}
      </p>
    </div>
    {runs.length === 0 ? <span class="pill">not processed</span> : runs.map((run) => <Run key={text(run, "id")} run={run} />)}
  </li>
);

const Sending = ({ upload }: { upload: Upload }) => (
  <li>
    <div class="wide">
      <strong>{upload.name}</strong> <span class="muted">{upload.about}</span>
      {upload.error && <p class="error">{upload.error}</p>}
    </div>
    {upload.state === "sending" && <progress value={upload.sent} max={upload.size} aria-label={`Sending ${upload.name}`} />}
    <span class={`pill ${upload.state === "failed" ? "bad" : upload.state === "done" ? "good" : "wait"}`}>
      {upload.state === "done" ? "added" : upload.state}
    </span>
  </li>
);

export const Library = () => {
  const { data, error, again } = useLoaded(load);
  const [filter, setFilter] = useState("");
  const open = data?.some((one) => one.runs.some((run) => text(run, "status") === "processing")) ?? false;
  useEffect(() => {
    if (!open) return;
    const timer = setTimeout(() => void again(), LOOK);
    return () => clearTimeout(timer);
  }, [open, data]);
  const wanted = filter.trim().toLowerCase();
  const shown = data?.filter(({ document }) => `${text(document, "title")} ${text(document, "comments")}`.toLowerCase().includes(wanted));
  const sum = data?.length ?? 0;
  return (
    <>
      <h1>Library</h1>
      <Drop done={() => void again()} />
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
      <p role="status">
        {error || (!data ? "Looking…" : sum === 0 ? "The library is empty." : open ? "Processing…" : `${sum} ${sum === 1 ? "document" : "documents"}, nothing is being processed.`)}
      </p>
      <ul class="rows documents" aria-label="Documents">
        {shown?.map(({ document, runs }) => (
          <Row key={text(document, "id")} document={document} runs={runs} />
        ))}
      </ul>
    </>
  );
};

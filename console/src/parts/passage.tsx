// The passage that a citation names, in its place: the chunk's text with the quotation marked, and the page around it.
import { useEffect, useRef, useState } from "preact/hooks";
import { content, metadata } from "../client/services.js";
import { text, type Citation } from "../client/wire.js";
import { Dialog } from "./dialog.js";
import { useLoaded } from "./loaded.js";

const escaped = (word: string): string => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Text before, of and after a quotation, whose line breaks may be others. */
export const quoted = (whole: string, quotation: string): [string, string, string] => {
  const words = quotation.trim().split(/\s+/).filter(Boolean);
  if (words.length === 0 || words.length > 500) return [whole, "", ""];
  const found = new RegExp(words.map(escaped).join("\\s+")).exec(whole);
  if (!found) return [whole, "", ""];
  const end = found.index + found[0].length;
  return [whole.slice(0, found.index), found[0], whole.slice(end)];
};

const load = async (cited: Citation) => {
  const chunk = await content(cited.chunk);
  const parent = text(await metadata(cited.chunk), "parent-id");
  return { chunk, parent };
};

const Marked = ({ whole, quotation }: { whole: string; quotation: string }) => {
  const [before, mark, after] = quoted(whole, quotation);
  const place = useRef<HTMLElement>(null);
  useEffect(() => place.current?.scrollIntoView({ block: "nearest" }), [whole]);
  return (
    <blockquote class="passage" tabIndex={0}>
      {before}
      {mark && <mark ref={place}>{mark}</mark>}
      {after}
    </blockquote>
  );
};

export const Passage = ({ cited, close }: { cited: Citation; close: () => void }) => {
  const { data, error } = useLoaded(() => load(cited), cited.chunk);
  const [page, setPage] = useState("");
  const [wrong, setWrong] = useState("");
  const isText = (found: string) => !found.startsWith("%PDF") && !found.includes("\u0000");
  const around = async () => {
    try {
      const found = data?.parent ? await content(data.parent) : "";
      setPage(isText(found) ? found : "");
      setWrong(found && isText(found) ? "" : "There is no text around it.");
    } catch (why) {
      setWrong((why as Error).message);
    }
  };
  return (
    <Dialog title={cited.title || cited.document || "Passage"} close={close}>
      <p class="muted">
        Citation {cited.n}
        {cited.page ? ` · page ${cited.page}` : ""}
      </p>
      {error && <p class="error">{error}</p>}
      {data ? <Marked whole={page || data.chunk} quotation={cited.text} /> : !error && <p>Looking it up…</p>}
      <p class="error" role="alert">
        {wrong}
      </p>
      {data?.parent && !page && (
        <button type="button" class="quiet" onClick={() => void around()}>
          Show what is around it
        </button>
      )}
      <dl class="ids">
        <dt>Document</dt>
        <dd>{cited.document}</dd>
        <dt>Passage</dt>
        <dd>{cited.chunk}</dd>
      </dl>
    </Dialog>
  );
};

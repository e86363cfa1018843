// A document of the library, opened: its text where it is one, and the file itself to keep.
import { bytes } from "../../client/services.js";
import { text, type Json } from "../../client/wire.js";
import { Dialog } from "../../parts/dialog.js";
import { useLoaded } from "../../parts/loaded.js";
import { leniently, ofHtml } from "./charset.js";
import { isText, kindName } from "./kind.js";

/** Characters that are shown. */
const SHOWN = 200_000;
/** A saved file may still be read for so long, in milliseconds. */
const KEPT = 60_000;

interface Found {
  file: Blob;
  /** Empty of what is no text. */
  shown: string;
}

const load = async (id: string, kind: string): Promise<Found> => {
  const file = await bytes(id);
  if (!isText(kind)) return { file, shown: "" };
  const whole = new Uint8Array(await file.arrayBuffer());
  return { file, shown: leniently(whole, kind.includes("html") ? ofHtml(whole) : undefined).text };
};

/** Gives a file to the browser to save. As bytes of no kind, so that nothing ever opens it as a page of this origin. */
const save = (file: Blob, name: string): void => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([file], { type: "application/octet-stream" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
};

export const Opened = ({ of, close }: { of: Json; close: () => void }) => {
  const [id, kind] = [text(of, "id"), text(of, "kind")];
  const { data, error } = useLoaded(() => load(id, kind), id);
  const title = text(of, "title") || id;
  return (
    <Dialog title={title} close={close}>
      {error && <p class="error">{error}</p>}
      {!data && !error && <p>Looking it up…</p>}
      {data && !data.shown && <p class="muted">{kindName(kind)} has no text to show here. Download it to read it.</p>}
      {data?.shown && (
        <blockquote class="passage" tabIndex={0}>
          {data.shown.slice(0, SHOWN)}
        </blockquote>
      )}
      {data && data.shown.length > SHOWN && <p class="muted">This is its beginning. Download it to read all of it.</p>}
      {data && (
        <button type="button" class="quiet" onClick={() => save(data.file, text(of, "comments") || title)}>
          Download
        </button>
      )}
      <dl class="ids">
        <dt>Document</dt>
        <dd>{id}</dd>
      </dl>
    </Dialog>
  );
};

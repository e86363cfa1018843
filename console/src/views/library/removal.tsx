// Asks before a document is deleted.
import { useState } from "preact/hooks";
import { failure, text, type Json } from "../../client/wire.js";
import { Dialog } from "../../parts/dialog.js";
import { remove } from "./shelf.js";

export const Removal = ({ of, close }: { of: Json; close: () => void }) => {
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const go = async () => {
    setBusy(true);
    try {
      await remove(text(of, "id"));
      close();
    } catch (why) {
      setWrong(failure(why).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Delete “${text(of, "title") || text(of, "id")}”?`} close={close}>
      <p>The document goes, with everything that was made from it: its passages, its vectors and its facts. Nothing brings it back.</p>
      <p class="error" role="alert">
        {wrong}
      </p>
      <button type="button" disabled={busy} onClick={() => void go()}>
        Delete it
      </button>
    </Dialog>
  );
};

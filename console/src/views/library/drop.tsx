// Where files are dropped, or chosen.
import { useRef, useState } from "preact/hooks";
import { take } from "./upload.js";

export const Drop = () => {
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer) take(event.dataTransfer.files);
  };
  const drag = (event: DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  const chosen = () => {
    const { current } = input;
    if (!current?.files) return;
    take([...current.files]);
    current.value = "";
  };
  return (
    <div class={`drop ${over ? "over" : ""}`} onDragOver={drag} onDragLeave={() => setOver(false)} onDrop={drop}>
      <p>
        <strong>Drop files here</strong> to add and process them
      </p>
      <p class="muted">PDF, Word, HTML, Markdown, text, CSV, JSON. The page finds kind and title of each.</p>
      <input id="files" class="hidden" type="file" multiple ref={input} onChange={chosen} />
      <label class="button" for="files">
        Choose files
      </label>
    </div>
  );
};

// A sheet over the page. The browser's own dialog: it holds the focus, Escape closes it, and closing it gives the focus back.
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  close: () => void;
  children: ComponentChildren;
}

export const Dialog = ({ title, close, children }: Props) => {
  const sheet = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before anything is painted; whoever closes it does so through the browser, which knows where the focus was.
  useLayoutEffect(() => sheet.current?.showModal(), []);
  const shut = () => sheet.current?.close();
  return (
    <dialog ref={sheet} aria-labelledby={id} onClose={close} onClick={(event) => event.target === sheet.current && shut()}>
      <div class="sheet">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" class="quiet" onClick={shut}>
            Close
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
};

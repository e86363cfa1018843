// Texts with marks: `code` and **strong**, as our own messages and descriptions have them. Everything else is text.
import type { ComponentChildren } from "preact";

const MARKS = /(`[^`]+`|\*\*[^*]+\*\*)/;

export const Inline = ({ text }: { text: string }): ComponentChildren =>
  text.split(MARKS).map((piece, at) => {
    if (at % 2 === 0) return piece;
    return piece.startsWith("`") ? <code key={at}>{piece.slice(1, -1)}</code> : <strong key={at}>{piece.slice(2, -2)}</strong>;
  });

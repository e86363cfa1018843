// Messages of a run, put together from the pieces that come.
import { text, type Json } from "../../client/wire.js";

/** One message of a run: what it thinks, does, sees or answers. */
export interface Message {
  id: string;
  kind: string;
  text: string;
  done: boolean;
}

/** Pieces of one message follow one another, by id or by kind; a new one begins after the end of the last. */
export const withPiece = (messages: Message[], kind: string, part: Json): Message[] => {
  const id = text(part, "message_id");
  const piece = text(part, "content") || text(part, "response");
  const done = part.end_of_message === true || part.end_of_stream === true;
  const at = messages.findLastIndex((one) => one.kind === kind && !one.done && (id === "" || one.id === id));
  const open = messages[at];
  if (!open) return piece ? [...messages, { id, kind, text: piece, done }] : messages;
  return messages.with(at, { ...open, text: open.text + piece, done });
};

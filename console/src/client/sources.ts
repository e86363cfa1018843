// The passages that an answer was given, by the documents that they are parts of.
import { metadata } from "./services.js";
import { text, type Citation } from "./wire.js";

/** Levels from a chunk up to its document, at most. */
const LEVELS = 8;

/** A passage as a citation: nothing of it is quoted, all of it may have been read. */
export const source = async (n: number, chunk: string): Promise<Citation> => {
  let [document, title] = [chunk, ""];
  for (let level = 0; level < LEVELS; level++) {
    const known = await metadata(document);
    title = text(known, "title");
    const parent = text(known, "parent-id");
    if (!parent) break;
    document = parent;
  }
  return { n, document, title, page: null, chunk, text: "" };
};

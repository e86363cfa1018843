// What is in the library, the newest first, and how its processing stands. The whole is read once; after that only what
// may have changed is asked for, by its id: what was added here, and what is still being processed.
import { signal } from "@preact/signals";
import { documents, metadata, processing, processings } from "../../client/services.js";
import { failure, text, type Json } from "../../client/wire.js";

export interface Shelf {
  /** The newest first. */
  documents: Json[];
  /** Processings by document, the oldest first. */
  runs: Map<string, Json[]>;
  /** There are more, newer ones that are not here. */
  more: boolean;
}

export const shelf = signal<Shelf | undefined>(undefined);

/** Processings that are asked for at a look, the newest. */
const LOOKED_AT = 50;

const isOpen = (run: Json): boolean => text(run, "status") === "processing";

/** All processings that may still change, the newest first. */
export const open = ({ documents, runs }: Shelf): Json[] =>
  documents.flatMap((document) => runs.get(text(document, "id")) ?? []).filter(isOpen);

/** Reads the whole library. */
export const fill = async (): Promise<void> => {
  const [found, processed] = await Promise.all([documents(), processings()]);
  const runs = new Map<string, Json[]>();
  for (const run of processed.entries) {
    const id = text(run, "document-id");
    const before = runs.get(id);
    if (before) before.push(run);
    else runs.set(id, [run]);
  }
  shelf.value = { documents: found.entries.reverse(), runs, more: found.more };
  const there = new Set(shelf.value.documents.map((one) => text(one, "id")));
  await Promise.all([...own].filter(([document]) => !there.has(document)).map(([document, run]) => fetched(document, run)));
};

/** Puts a processing in its place. */
const put = (run: Json): void => {
  const now = shelf.value;
  if (!now) return;
  const runs = new Map(now.runs);
  const document = text(run, "document-id");
  const before = runs.get(document) ?? [];
  const at = before.findIndex((one) => text(one, "id") === text(run, "id"));
  runs.set(document, at < 0 ? [...before, run] : before.with(at, run));
  shelf.value = { ...now, runs };
};

/** Takes one out that is gone. */
const drop = (run: Json): void => {
  const now = shelf.value;
  if (!now) return;
  const runs = new Map(now.runs);
  const document = text(run, "document-id");
  runs.set(document, (runs.get(document) ?? []).filter((one) => text(one, "id") !== text(run, "id")));
  shelf.value = { ...now, runs };
};

/** What was added here, with the processing that was begun: a listing that was under way then has none of it. */
const own = new Map<string, string>();

/** A document that was added here, with the processing that was begun. */
export const added = (document: string, run: string): void => {
  own.set(document, run);
  void fetched(document, run);
};

/** Asks for one document. If that fails, the next look at everything does it. */
const fetched = async (document: string, run: string): Promise<void> => {
  try {
    const [found, begun] = await Promise.all([metadata(document), processing(run)]);
    const now = shelf.value;
    if (!now) return;
    const others = now.documents.filter((one) => text(one, "id") !== document);
    shelf.value = { ...now, documents: [found, ...others] };
    if (begun) put(begun);
  } catch (why) {
    if (failure(why).kind === "not-found") own.delete(document);
  }
};

/** Looks at what is still being processed. */
export const look = async (): Promise<void> => {
  const now = shelf.value;
  if (!now) return;
  const one = async (run: Json): Promise<void> => {
    try {
      const found = await processing(text(run, "id"));
      if (found) put(found);
    } catch (why) {
      if (failure(why).kind !== "not-found") throw why;
      drop(run);
    }
  };
  await Promise.all(open(now).slice(0, LOOKED_AT).map(one));
};

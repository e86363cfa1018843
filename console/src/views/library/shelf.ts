// What is in the library, the newest first, and how its processing stands. The whole is read once; after that only what
// may have changed is asked for, by its id: what was added here, and what is still being processed.
import { signal } from "@preact/signals";
import { documents, librarian, metadata, processing, processings } from "../../client/services.js";
import { collection, flow } from "../../client/session.js";
import { failure, list, text, type Json } from "../../client/wire.js";
import { uuid } from "./uuid.js";

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
  const before = removed.length;
  const [found, processed] = await Promise.all([documents(), processings()]);
  // The listing may still have what was removed since it began.
  const gone = new Set(removed.slice(before));
  const runs = new Map<string, Json[]>();
  for (const run of processed.entries) {
    const id = text(run, "document-id");
    const others = runs.get(id);
    if (others) others.push(run);
    else runs.set(id, [run]);
  }
  const kept = found.entries.filter((one) => !gone.has(text(one, "id")));
  shelf.value = { documents: kept.reverse(), runs, more: found.more };
  const there = new Set(shelf.value.documents.map((one) => text(one, "id")));
  const lacks = ([document, run]: [string, string]): boolean =>
    !there.has(document) || !runs.get(document)?.some((one) => text(one, "id") === run);
  await Promise.all([...own].filter(lacks).map(([document, run]) => fetched(document, run)));
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

/** What was removed here, in that order. */
const removed: string[] = [];

/** The document that has this content, whoever added it. */
export const holding = (hash: string): string | undefined => {
  const found = shelf.value?.documents.find((one) => text(one, "content-hash") === hash);
  return found && text(found, "id");
};

/** Where documents go. */
export interface Place {
  flow: string;
  collection: string;
}

/** The flow and the collection that are chosen now. */
export const place = (): Place => ({ flow: flow.value, collection: collection.value });

/** The latest processing of a document into a place. */
export const current = (document: string, into: Place): string | undefined => {
  const here = (run: Json): boolean => text(run, "flow") === into.flow && text(run, "collection") === into.collection;
  const run = shelf.value?.runs.get(document)?.findLast(here);
  return run && text(run, "id");
};

/** Begins to process a document; the id of the processing. */
export const process = async (document: string, into: Place): Promise<string> => {
  const wanted = {
    id: `urn:processing:${uuid()}`, "document-id": document, time: Math.floor(Date.now() / 1000), tags: [],
    flow: into.flow, collection: into.collection,
  };
  const answer = await librarian({ operation: "add-processing", "processing-metadata": wanted });
  const run = list(answer, "processing-metadatas")[0];
  if (run) put(run);
  return text(run, "id");
};

/** Tries again what failed of a processing. */
export const retry = async (id: string): Promise<void> => {
  const answer = await librarian({ operation: "retry-processing", "processing-id": id });
  const run = list(answer, "processing-metadatas")[0];
  if (run) put(run);
};

/** Removes a document with all that was made of it. */
export const remove = async (document: string): Promise<void> => {
  await librarian({ operation: "remove-document", "document-id": document });
  removed.push(document);
  own.delete(document);
  const now = shelf.value;
  if (now) shelf.value = { ...now, documents: now.documents.filter((one) => text(one, "id") !== document) };
};

/** A document that was added here, with the processing that was begun. Ends once it is listed. */
export const added = (document: string, run: string): Promise<void> => {
  own.set(document, run);
  return fetched(document, run);
};

/** Asks for one document. If that fails, the next look at everything does it. */
const fetched = async (document: string, run: string): Promise<void> => {
  try {
    const [found, begun] = await Promise.all([metadata(document), processing(run)]);
    const now = shelf.value;
    // It may have been removed meanwhile.
    if (!now || !own.has(document)) return;
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

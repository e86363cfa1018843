// A file on its way: read, looked at, put into the library (in parts if it is large), its processing begun.
import { signal } from "@preact/signals";
import { librarian } from "../../client/services.js";
import { collection, flow } from "../../client/session.js";
import { failure, list, text, type Json } from "../../client/wire.js";
import { kindName, look } from "./kind.js";
import { added } from "./shelf.js";

export interface Upload {
  number: number;
  name: string;
  /** Kind and title once they are known. */
  about: string;
  sent: number;
  size: number;
  state: "reading" | "sending" | "done" | "failed";
  error: string;
  document: string;
}

export const uploads = signal<Upload[]>([]);

/** From this size on a document goes in parts of that size. */
const WHOLE = 2 << 20;
const PART = 1 << 20;
const LARGEST = 256 << 20;
/** Files under way at a time. */
const AT_ONCE = 2;

let next = 1;
let under = 0;
const waiting: [Upload, File][] = [];

const change = (number: number, what: Partial<Upload>): void => {
  uploads.value = uploads.value.map((one) => (one.number === number ? { ...one, ...what } : one));
};

/** Takes files. */
export const take = (files: Iterable<File>): void => {
  for (const file of files) {
    const upload: Upload = {
      number: next++, name: file.name, about: "", sent: 0, size: file.size, state: "reading", error: "", document: "",
    };
    uploads.value = [...uploads.value, upload];
    waiting.push([upload, file]);
  }
  pump();
};

const pump = (): void => {
  while (under < AT_ONCE) {
    const one = waiting.shift();
    if (!one) return;
    under += 1;
    const [upload, file] = one;
    void put(upload.number, file)
      .catch((why: unknown) => change(upload.number, { state: "failed", error: failure(why).message }))
      .finally(() => {
        under -= 1;
        pump();
      });
  }
};

const put = async (number: number, file: File): Promise<void> => {
  if (file.size > LARGEST) return change(number, { state: "failed", error: "is larger than 256 MiB" });
  const content = new Uint8Array(await file.arrayBuffer());
  const looked = await look(file.name, content);
  if ("refused" in looked) return change(number, { state: "failed", error: looked.refused });
  const { kind, title } = looked;
  change(number, { about: `“${title}”, ${kindName(kind)}`, state: "sending" });
  const document: Json = { kind, title, comments: file.name, time: Math.floor(Date.now() / 1000), tags: [] };
  const into = { flow: flow.value, collection: collection.value };
  const put = content.length < WHOLE ? whole(document, into, content) : parts(number, document, into, content);
  const [id, run] = await put;
  change(number, { state: "done", sent: content.length, document: id });
  added(id, run);
};

/** Ids of a document and of its processing. */
type Put = Promise<[string, string]>;

const runOf = (answer: Json): string => text(list(answer, "processing-metadatas")[0], "id");

const whole = async (document: Json, into: Json, content: Uint8Array): Put => {
  const answer = await librarian({
    operation: "load-document",
    "document-metadata": document,
    content: encoded(content),
    "processing-metadata": into,
  });
  return [text(answer, "document-id"), runOf(answer)];
};

const parts = async (number: number, document: Json, into: Json, content: Uint8Array): Put => {
  const id = `urn:document:${uuid()}`;
  const begun = await librarian({
    operation: "begin-upload",
    "document-metadata": { ...document, id },
    "total-size": content.length,
    "chunk-size": PART,
  });
  const upload = text(begun, "upload-id");
  // The library may want parts of another size.
  const size = Number(begun["chunk-size"]) || PART;
  try {
    for (let index = 0; index * size < content.length; index++) {
      const piece = content.subarray(index * size, (index + 1) * size);
      await librarian({ operation: "upload-chunk", "upload-id": upload, "chunk-index": index, content: encoded(piece) });
      change(number, { sent: index * size + piece.length });
    }
    await librarian({ operation: "complete-upload", "upload-id": upload });
  } catch (why) {
    void librarian({ operation: "abort-upload", "upload-id": upload }).catch(() => {});
    throw why;
  }
  const processing = { id: `urn:processing:${uuid()}`, "document-id": id, time: document.time, tags: [], ...into };
  const answer = await librarian({ operation: "add-processing", "processing-metadata": processing });
  return [id, runOf(answer)];
};

const encoded = (bytes: Uint8Array): string => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
};

/** A random id; `crypto.randomUUID` is there on secure pages only. */
const uuid = (): string => {
  const hex = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
};

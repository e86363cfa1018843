// A file on its way: read, looked at, put into the library (in parts if it is large), its processing begun.
import { signal } from "@preact/signals";
import { librarian } from "../../client/services.js";
import { failure, list, text, type Json } from "../../client/wire.js";
import { kindName, look } from "./kind.js";
import { added, current, fill, holding, place, process, type Place } from "./shelf.js";
import { uuid } from "./uuid.js";

export interface Upload {
  number: number;
  name: string;
  /** Kind and title once they are known. */
  about: string;
  sent: number;
  size: number;
  /** `there`: the library has its content, and takes or took it into this collection. */
  state: "reading" | "sending" | "done" | "there" | "failed";
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

/** Large files on their way, by their hash: the document, empty if that failed. The library itself knows equal small files. */
const sending = new Map<string, Promise<string>>();

let next = 1;
let under = 0;
const waiting: [Upload, File, Promise<void>, Place][] = [];

const change = (number: number, what: Partial<Upload>): void => {
  uploads.value = uploads.value.map((one) => (one.number === number ? { ...one, ...what } : one));
};

/** Takes files. */
export const take = (files: Iterable<File>): void => {
  // What others added meanwhile counts, too. Whoever may not list documents may still add some.
  const listed = fill().catch(() => {});
  // Where they go is what was chosen when they were dropped.
  const into = place();
  for (const file of files) {
    const upload: Upload = {
      number: next++, name: file.name, about: "", sent: 0, size: file.size, state: "reading", error: "", document: "",
    };
    uploads.value = [...uploads.value, upload];
    waiting.push([upload, file, listed, into]);
  }
  pump();
};

const pump = (): void => {
  while (under < AT_ONCE) {
    const one = waiting.shift();
    if (!one) return;
    under += 1;
    const [upload, file, listed, into] = one;
    void put(upload.number, file, listed, into)
      .catch((why: unknown) => change(upload.number, { state: "failed", error: failure(why).message }))
      .finally(() => {
        under -= 1;
        pump();
      });
  }
};

const put = async (number: number, file: File, listed: Promise<void>, into: Place): Promise<void> => {
  if (file.size > LARGEST) return change(number, { state: "failed", error: "is larger than 256 MiB" });
  const read = await file.arrayBuffer();
  const content = new Uint8Array(read);
  const looked = await look(file.name, content);
  if ("refused" in looked) return change(number, { state: "failed", error: looked.refused });
  const { kind, title } = looked;
  change(number, { about: `“${title}”, ${kindName(kind)}`, state: "sending" });
  const hash = await digest(read);
  await listed;
  // Nothing is waited for where nobody sends it: two files with one content would both go on.
  const underway = sending.get(hash);
  const held = hash && (holding(hash) ?? (underway && (await underway)));
  if (held) return found(number, held, into);
  const document: Json = { kind, title, comments: file.name, time: Math.floor(Date.now() / 1000), tags: [] };
  const large = content.length >= WHOLE;
  const put = large ? parts(number, document, content, into) : whole(document, content, into);
  if (hash && large) sending.set(hash, put.then(([id]) => id, () => ""));
  try {
    const [id, run] = await put;
    change(number, { state: "done", sent: content.length, document: id });
    void added(id, run).finally(() => sending.delete(hash));
  } catch (why) {
    sending.delete(hash);
    throw why;
  }
};

/** The library has this content: it is processed where it was not yet. */
const found = async (number: number, id: string, into: Place): Promise<void> => {
  const known = current(id, into);
  const run = known ?? (await process(id, into));
  change(number, { state: known ? "there" : "done", document: id });
  void added(id, run);
};

/** The SHA-256 in hexadecimal digits. Browsers compute it on secure pages only; elsewhere it is empty. */
const digest = async (content: ArrayBuffer): Promise<string> => {
  if (!isSecureContext) return "";
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

/** Ids of a document and of its processing. */
type Put = Promise<[string, string]>;

const whole = async (document: Json, content: Uint8Array, into: Place): Put => {
  const answer = await librarian({
    operation: "load-document",
    "document-metadata": document,
    content: encoded(content),
    "processing-metadata": into,
  });
  return [text(answer, "document-id"), text(list(answer, "processing-metadatas")[0], "id")];
};

const parts = async (number: number, document: Json, content: Uint8Array, into: Place): Put => {
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
  return [id, await process(id, into)];
};

const encoded = (bytes: Uint8Array): string => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
};

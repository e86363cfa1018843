// The title in the information of a PDF, which may be packed. Only looks, within bounds: whatever is not as expected is
// no title.
import { find, findLast, letters } from "./bytes.js";

/** Bytes of an object that are looked at. */
const OBJECT = 16 * 1024;
/** Streams of one file that are unpacked at most; bytes of one, and of all. */
const STREAMS = 2000;
const LONGEST = 4 << 20;
const MOST = 64 << 20;
/** How far from its type a stream's dictionary reaches. */
const DICTIONARY = 4096;
/** Bytes that are unpacked at a time: what follows the end of a stream takes no more than its last piece with it. */
const PIECE = 256;

/** Of an encrypted file nothing can be told. */
export const pdfTitle = async (pdf: Uint8Array<ArrayBuffer>): Promise<string> => {
  if (find(pdf, "/Encrypt") >= 0) return "";
  const at = findLast(pdf, "/Info");
  const named = at < 0 ? null : /^[\0\t\n\f\r ]*(\d+)[\0\t\n\f\r ]+(\d+)[\0\t\n\f\r ]*R/.exec(letters(pdf.subarray(at + 5, at + 64)));
  if (!named) return "";
  const plain = objectOf(pdf, `${named[1]} ${named[2]} obj`);
  const found = plain && titleIn(plain);
  if (found !== undefined) return found;
  for await (const objects of unpacked(pdf)) {
    const object = packedObject(objects, Number(named[1]));
    const title = object && titleIn(object);
    if (title !== undefined) return title;
  }
  return "";
};

/** The last object of that name. */
const objectOf = (pdf: Uint8Array, name: string): Uint8Array | undefined => {
  for (let at = findLast(pdf, name); at >= 0; at = findLast(pdf, name, at)) {
    // `12 0 obj` is not `2 0 obj`.
    const before = pdf[at - 1] ?? 0;
    if (before < 0x30 || before > 0x39) return pdf.subarray(at + name.length);
  }
  return undefined;
};

/** The unpacked text of each stream of objects: numbers and places of the objects first, then the objects. */
async function* unpacked(pdf: Uint8Array<ArrayBuffer>): AsyncGenerator<Uint8Array> {
  let [at, left] = [0, MOST];
  for (let count = 0; count < STREAMS; count++) {
    const type = find(pdf, "/ObjStm", at);
    if (type < 0) return;
    at = type + 7;
    const start = find(pdf.subarray(at, at + DICTIONARY), "stream");
    if (start < 0) continue;
    let from = at + start + 6;
    if (pdf[from] === 0x0d) from += 1;
    if (pdf[from] === 0x0a) from += 1;
    const end = find(pdf, "endstream", from);
    const objects = await inflated(pdf.subarray(from, end < 0 ? pdf.length : end));
    left -= objects.length;
    if (left < 0) return;
    yield objects;
  }
}

/** What came before it broke off is looked at all the same. */
const inflated = async (packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> => {
  const stream = new DecompressionStream("deflate");
  const [writer, reader] = [stream.writable.getWriter(), stream.readable.getReader()];
  const feed = async () => {
    for (let at = 0; at < packed.length; at += PIECE) await writer.write(packed.subarray(at, at + PIECE));
    await writer.close();
  };
  void feed().catch(() => {});
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    while (size < LONGEST) {
      const { value, done } = await reader.read();
      if (done) break;
      pieces.push(value);
      size += value.length;
    }
  } catch {
    // Not packed, or something follows.
  }
  void reader.cancel().catch(() => {});
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole.subarray(0, LONGEST);
};

/** An object of an unpacked stream, by its number. */
const packedObject = (objects: Uint8Array, wanted: number): Uint8Array | undefined => {
  const head = letters(objects);
  // Pairs of numbers come first; where they end, the objects begin.
  const pair = /[\0\t\n\f\r ]*(\d+)[\0\t\n\f\r ]+(\d+)/y;
  let [last, end, found] = [0, 0, -1];
  for (let one = pair.exec(head); one; one = pair.exec(head)) {
    const place = Number(one[2]);
    if (place < last) break;
    last = place;
    end = pair.lastIndex;
    if (Number(one[1]) === wanted) found = place;
  }
  const blank = /^[\0\t\n\f\r ]*/.exec(head.slice(end, end + 64))![0].length;
  return found < 0 ? undefined : objects.subarray(end + blank + found);
};

const titleIn = (object: Uint8Array): string | undefined => {
  const text = letters(object.subarray(0, OBJECT));
  const end = text.indexOf("endobj");
  const dictionary = end < 0 ? text : text.slice(0, end);
  const at = dictionary.indexOf("/Title");
  if (at < 0) return undefined;
  const value = dictionary.slice(at + 6).replace(/^[\0\t\n\f\r ]+/, "");
  if (value.startsWith("(")) return decoded(literal(value.slice(1)));
  if (value.startsWith("<") && !value.startsWith("<<")) return decoded(hex(value.slice(1)));
  return undefined;
};

/** A string in brackets, which may nest and escape. */
const literal = (text: string): string => {
  let [out, depth] = ["", 1];
  const escape = /\\(?:([0-7]{1,3})|(\r\n?|\n)|([nrtbf])|([^]))/y;
  for (let at = 0; at < text.length; at++) {
    const one = text[at]!;
    if (one === "\\") {
      escape.lastIndex = at;
      const found = escape.exec(text);
      if (!found) break;
      at += found[0].length - 1;
      if (found[1]) out += String.fromCharCode(parseInt(found[1], 8) & 0xff);
      else if (!found[2]) out += found[3] ? " " : found[4];
      continue;
    }
    if (one === "(") depth += 1;
    if (one === ")" && --depth === 0) break;
    out += one;
  }
  return out;
};

/** A string in hexadecimal digits. */
const hex = (text: string): string => {
  const digits = text.split(">")[0]!.replace(/[^0-9a-fA-F]/g, "");
  const pairs = digits.match(/..?/g) ?? [];
  return pairs.map((pair) => String.fromCharCode(parseInt(pair.padEnd(2, "0"), 16))).join("");
};

const SIGNS: Record<string, string> = {
  "\x84": "—", "\x85": "–", "\x8d": "“", "\x8e": "”", "\x8f": "‘", "\x90": "’", "\x93": "ﬁ", "\x94": "ﬂ",
};

/** UTF-16 or UTF-8 with their marks; else the encoding of PDF, which is Latin-1 but for signs that titles rarely have. */
const decoded = (text: string): string => {
  const bytes = Uint8Array.from(text, (one) => one.charCodeAt(0));
  if (text.startsWith("\xfe\xff")) return new TextDecoder("utf-16be").decode(bytes.subarray(2, bytes.length - (bytes.length % 2)));
  if (text.startsWith("\xef\xbb\xbf")) return new TextDecoder().decode(bytes.subarray(3));
  return text.replace(/[\x84\x85\x8d-\x90\x93\x94]/g, (one) => SIGNS[one] ?? one);
};

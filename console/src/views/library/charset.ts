// Which characters the bytes of a text are: as the text itself declares, else UTF-8. What is neither is in some charset
// of old; which, the reader of documents guesses, and this does not.
import { letters, starts } from "./bytes.js";

/** How far into a page its charset may be declared, as browsers have it. */
const DECLARED_WITHIN = 1024;
/** Of so many characters of UTF-8 one byte may be wrong: more than that, and it is UTF-8 with a fault. */
const FAULTS = 8;
/** Bytes, from the first that is not ASCII, by which that is decided. */
const EVIDENCE = 64 * 1024;
/** One in so many characters of a text may be a control character. */
const CONTROLS = 20;
/** Bytes that are decoded at a time. */
const PIECE = 1 << 20;
/** Undeclared, and not UTF-8. */
const OF_OLD = "windows-1252";

const BINARY = "is binary, not text";

/** How a text is to be read, and whether that is only a guess. */
interface Charset {
  name: string;
  /** Bytes of its mark. */
  mark: number;
  guessed: boolean;
}

const known = (name: string, mark = 0): Charset => ({ name, mark, guessed: false });

/** The charset that an XML declaration names. */
const ofXml = (head: Uint8Array): string | undefined => {
  const text = letters(head.subarray(0, DECLARED_WITHIN));
  const end = text.indexOf("?>");
  return text.startsWith("<?xml") && end >= 0 ? named(valueOf(text.slice(5, end), "encoding")) : undefined;
};

/** The charset that a web page declares in a `meta` element, or as XML. */
export const ofHtml = (whole: Uint8Array): string | undefined => {
  const head = whole.subarray(0, DECLARED_WITHIN);
  const blank = /^[\t\n\f\r ]*/.exec(letters(head))![0].length;
  const xml = ofXml(head.subarray(blank));
  if (xml) return xml;
  let rest = letters(head).toLowerCase();
  for (let at = rest.indexOf("<"); at >= 0; at = rest.indexOf("<")) {
    rest = rest.slice(at);
    const comment = rest.startsWith("<!--");
    const end = rest.indexOf(comment ? "-->" : ">");
    if (end < 0) return undefined;
    const found = rest.startsWith("<meta") ? named(valueOf(rest.slice(0, end), "charset")) : undefined;
    if (found) return found;
    rest = rest.slice(comment ? end + 3 : end);
  }
  return undefined;
};

/** The value behind `name=`, also where that stands within a value. */
const valueOf = (text: string, name: string): string | undefined => {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + name.length)) {
    const found = /^[\t\n\f\r ]*=[\t\n\f\r ]*["']?[\t\n\f\r ]*([^"';>/?\t\n\f\r ]*)/.exec(text.slice(at + name.length));
    if (found) return found[1];
  }
  return undefined;
};

/** A charset by its name. One that was read byte by byte until here has no wide characters, whatever it says. */
const named = (label: string | undefined): string | undefined => {
  try {
    const name = label ? new TextDecoder(label).encoding : undefined;
    return name?.startsWith("utf-16") ? "utf-8" : name;
  } catch {
    return undefined;
  }
};

const marked = (bytes: Uint8Array): Charset | undefined => {
  if (starts(bytes, "\xef\xbb\xbf")) return known("utf-8", 3);
  if (starts(bytes, "\xff\xfe")) return known("utf-16le", 2);
  return starts(bytes, "\xfe\xff") ? known("utf-16be", 2) : undefined;
};

/** What a text is in. `declared`: as something around it says. */
const charsetOf = (bytes: Uint8Array, declared?: string): Charset => {
  const mark = marked(bytes);
  if (mark) return mark;
  const said = declared ?? ofXml(bytes);
  if (said) return known(said);
  const first = wideFrom(bytes, 0);
  if (first === bytes.length || isUtf8(bytes.subarray(first, first + EVIDENCE), bytes.length - first <= EVIDENCE)) return known("utf-8");
  return { name: OF_OLD, mark: 0, guessed: true };
};

/** The next byte that is not ASCII; the length if there is none. */
const wideFrom = (bytes: Uint8Array, from: number): number => {
  let at = from;
  while (at < bytes.length && bytes[at]! < 0x80) at += 1;
  return at;
};

/** The character at a place: its length, or that of what is none, and whether it would have gone on. */
const character = (bytes: Uint8Array, at: number): { length: number; whole: boolean; cut: boolean } => {
  const lead = bytes[at]!;
  const more = lead < 0x80 ? 0 : lead < 0xc2 || lead > 0xf4 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  if (more < 0) return { length: 1, whole: false, cut: false };
  for (let next = 1; next <= more; next++) {
    const byte = bytes[at + next];
    if (byte === undefined) return { length: next, whole: false, cut: true };
    const least = next > 1 ? 0x80 : lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
    const most = next > 1 ? 0xbf : lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
    if (byte < least || byte > most) return { length: next, whole: false, cut: false };
  }
  return { length: more + 1, whole: true, cut: false };
};

/** Whether bytes are UTF-8, with a fault at most here and there. `last`: there are no more. */
const isUtf8 = (bytes: Uint8Array, last: boolean): boolean => {
  let [characters, faults] = [0, 0];
  for (let at = wideFrom(bytes, 0); at < bytes.length; at = wideFrom(bytes, at)) {
    const { length, whole, cut } = character(bytes, at);
    if (whole) characters += 1;
    // The beginning of a character at the end may go on; where it is more than one byte, it was cut off.
    if (!whole && !(cut && (!last || length > 1))) faults += 1;
    at += length;
  }
  return faults === 0 || characters > faults * FAULTS;
};

/** The first byte that is none of a text in UTF-8; -1 if there is none. */
const wrongIn = (bytes: Uint8Array, from: number): number => {
  for (let at = wideFrom(bytes, from); at < bytes.length; at = wideFrom(bytes, at)) {
    const { length, whole } = character(bytes, at);
    if (!whole) return at;
    at += length;
  }
  return -1;
};

/** The same for another charset: as far as the text can be decoded. */
const wrongAs = (bytes: Uint8Array, { name, mark }: Charset): number => {
  const fits = (until: number, stream: boolean): boolean => {
    try {
      new TextDecoder(name, { fatal: true, ignoreBOM: true }).decode(bytes.subarray(mark, until), { stream });
      return true;
    } catch {
      return false;
    }
  };
  if (fits(bytes.length, false)) return -1;
  let [good, bad] = [mark, bytes.length];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (fits(middle, true)) good = middle;
    else bad = middle;
  }
  // A character is not begun where the text may end.
  let at = good;
  while (at > mark && !fits(at, false)) at -= 1;
  return at;
};

/** As people write it. */
const shown = (name: string): string => {
  if (/^(windows|gb|macintosh|x-)/.test(name)) return name;
  return { big5: "Big5", shift_jis: "Shift_JIS" }[name] ?? name.toUpperCase();
};

/** The first byte that cannot be; -1 if there is none. */
const wrongAt = (bytes: Uint8Array, charset: Charset): number => {
  if (charset.guessed) return -1;
  return charset.name === "utf-8" ? wrongIn(bytes, charset.mark) : wrongAs(bytes, charset);
};

/** Why bytes are no text that can be read to its end; empty if they are. */
export const unreadable = (bytes: Uint8Array): string => {
  const charset = charsetOf(bytes);
  const { name, mark, guessed } = charset;
  const first = wideFrom(bytes, 0);
  if (guessed && isOdd(new TextDecoder(name).decode(bytes.subarray(first, first + EVIDENCE)))) return BINARY;
  const decoder = new TextDecoder(name, { fatal: !guessed, ignoreBOM: true });
  let blank = true;
  try {
    for (let from = mark; from < bytes.length; from += PIECE) {
      const text = decoder.decode(bytes.subarray(from, from + PIECE), { stream: from + PIECE < bytes.length });
      if (text.includes("\0")) return BINARY;
      blank &&= !/\P{White_Space}/u.test(text);
    }
  } catch {
    const wrong = wrongAt(bytes, charset);
    const sound = new TextDecoder(name, { ignoreBOM: true }).decode(bytes.subarray(mark, wrong));
    return sound.includes("\0") ? BINARY : `is not ${shown(name)} text: byte ${wrong} cannot be; convert it to UTF-8`;
  }
  return blank ? "has no text" : "";
};

/** Whether what was decoded with a guess looks like nothing that people write. */
const isOdd = (text: string): boolean => {
  const odd = [...text].filter((one) => /\p{Cc}/u.test(one) && !"\t\n\r\f\x1b".includes(one)).length;
  return odd * CONTROLS > text.length;
};

/** A whole text, as it declares itself; what cannot be in it shows as a sign for that. */
export const leniently = (bytes: Uint8Array, declared?: string): { text: string; guessed: boolean } => {
  for (const charset of [charsetOf(bytes, declared), charsetOf(bytes)]) {
    if (wrongAt(bytes, charset) >= 0) continue;
    const text = new TextDecoder(charset.name, { ignoreBOM: true }).decode(bytes.subarray(charset.mark));
    if (!text.includes("\0")) return { text, guessed: charset.guessed };
  }
  const guessed = !declared && !isUtf8(bytes, false);
  return { text: new TextDecoder(declared ?? (guessed ? OF_OLD : "utf-8")).decode(bytes), guessed };
};

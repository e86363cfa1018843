// What a file is and is called, before it goes into the library: what `tg add` says of it. Both are held against
// `console/test/kinds.json`.
import { find, letters, starts } from "./bytes.js";
import { unreadable } from "./charset.js";
import { MARKDOWN, title, type Kind } from "./title.js";

const PDF = "application/pdf";
const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const HTML = "text/html";
const XHTML = "application/xhtml+xml";

/** What the ending of a name declares. */
const ENDINGS = new Map<string, string>(
  Object.entries({
    pdf: PDF, docx: DOCX, html: HTML, htm: HTML, xhtml: XHTML, md: MARKDOWN, markdown: MARKDOWN,
    csv: "text/csv", tsv: "text/tab-separated-values", json: "application/json", xml: "application/xml",
    yaml: "application/yaml", yml: "application/yaml", txt: "text/plain",
    c: "text/x-c", h: "text/x-c", cc: "text/x-c++", cpp: "text/x-c++", hpp: "text/x-c++", cs: "text/x-csharp",
    go: "text/x-go", java: "text/x-java", js: "text/javascript", mjs: "text/javascript", kt: "text/x-kotlin",
    php: "text/x-php", py: "text/x-python", rb: "text/x-ruby", rs: "text/x-rust", scala: "text/x-scala",
    sh: "text/x-sh", swift: "text/x-swift", toml: "text/x-toml", ts: "text/x-typescript",
  }),
);

/** Text that is not called so. */
const DATA = ["application/json", "application/xml", "application/csv", "application/yaml"];

const NAMES = new Map<string, string>(
  Object.entries({
    [PDF]: "PDF", [DOCX]: "Word", [HTML]: "HTML", [XHTML]: "HTML", [MARKDOWN]: "Markdown",
    "text/csv": "CSV", "application/csv": "CSV", "text/tab-separated-values": "TSV", "application/json": "JSON",
    "application/xml": "XML", "application/yaml": "YAML", "text/plain": "text",
    "text/javascript": "JavaScript", "text/x-c": "C", "text/x-c++": "C++", "text/x-csharp": "C#", "text/x-go": "Go",
    "text/x-java": "Java", "text/x-kotlin": "Kotlin", "text/x-php": "PHP", "text/x-python": "Python",
    "text/x-ruby": "Ruby", "text/x-rust": "Rust", "text/x-scala": "Scala", "text/x-sh": "shell",
    "text/x-swift": "Swift", "text/x-toml": "TOML", "text/x-typescript": "TypeScript",
  }),
);

/** First bytes of what is known and not read. */
const NOT_READ: [string, string][] = [
  ["\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office file from before 2007"],
  ["{\\rtf", "an RTF document"],
  ["\x89PNG\r\n", "an image"],
  ["\xff\xd8\xff", "an image"],
  ["GIF8", "an image"],
  ["II*\0", "an image"],
  ["MM\0*", "an image"],
  ["\x1f\x8b", "a compressed file"],
  ["BZh", "a compressed file"],
  ["\xfd7zXZ\0", "a compressed file"],
  ["\x28\xb5\x2f\xfd", "a compressed file"],
  ["7z\xbc\xaf\x27\x1c", "an archive"],
  ["Rar!\x1a\x07", "an archive"],
  ["\x7fELF", "a program"],
  ["SQLite format 3\0", "a database"],
];

/** Parts of packed files, by which they are known. */
const PACKED: [string, string][] = [
  ["xl/", "a spreadsheet"],
  ["ppt/", "a presentation"],
  ["mimetypeapplication/", "an e-book or OpenDocument file"],
];

/** A kind for people. */
export const kindName = (mime: string): string => NAMES.get(mime) ?? mime;

/** Whether what is kept as this can be shown as text. */
export const isText = (mime: string): boolean => mime.startsWith("text/") || mime === XHTML || DATA.includes(mime);

/** What a file is: kind and title, or why nothing can read it. */
export type Looked = { kind: string; title: string } | { refused: string };

/** Bytes that tell the kind. */
const HEAD = 8 * 1024;

export const look = async (name: string, content: Uint8Array<ArrayBuffer>): Promise<Looked> => {
  const ending = /\.([^.]*)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  const declared = ENDINGS.get(ending) ?? "";
  const kind = detect(content.subarray(0, HEAD), declared);
  if (typeof kind !== "string") return kind;
  const wrong = kind === "text" ? unreadable(content) : kind === "pdf" && !hasItsEnd(content) ? DAMAGED : "";
  if (wrong) return { refused: wrong };
  const mime = mimeOf(kind, declared);
  return { kind: mime, title: (await title(kind, mime, content)) || name };
};

/** As what it is kept. The name tells one text from another. */
const mimeOf = (kind: Kind, declared: string): string => {
  if (kind !== "text") return { pdf: PDF, html: HTML, docx: DOCX }[kind];
  return declared.startsWith("text/") || DATA.includes(declared) ? declared : "text/plain";
};

const DAMAGED = "is damaged or incomplete";

/** Whether a PDF ends with where its table of objects is, and it is there. */
const hasItsEnd = (content: Uint8Array): boolean => {
  const pdf = content.subarray(Math.max(find(content.subarray(0, HEAD), "%PDF-"), 0));
  const text = (from: number, to?: number) => new TextDecoder("latin1").decode(pdf.subarray(Math.max(from, 0), to));
  const last = text(pdf.length - 512);
  const mark = last.lastIndexOf("%%EOF");
  const start = /startxref\s*(\d+)/.exec(last.slice(Math.max(mark - 25, 0), mark));
  return mark >= 0 && start !== null && /^\s*(xref|\d)/.test(text(Number(start[1]), Number(start[1]) + 64));
};

const notRead = (what: string): Looked => ({ refused: `is ${what}, which is not read; convert it to PDF or text` });

const detect = (head: Uint8Array, declared: string): Kind | Looked => {
  if (head.length === 0) return { refused: "is empty" };
  if (isPdf(head, declared === PDF)) return "pdf";
  if (starts(head, "PK\x03\x04")) {
    if (declared === DOCX || find(head, "word/") >= 0) return "docx";
    return notRead(PACKED.find(([part]) => find(head, part) >= 0)?.[1] ?? "an archive");
  }
  const known = NOT_READ.find(([magic]) => starts(head, magic));
  if (known) return notRead(known[1]);
  if (declared === PDF) return { refused: "is declared as a PDF but is not a PDF" };
  if (declared === DOCX) return { refused: "is declared as a Word document but is not a Word document" };
  if (!looksLikeText(head)) return { refused: "is binary, not text" };
  return isHtml(head) || declared === HTML || declared === XHTML ? "html" : "text";
};

/** Some writers put a few bytes before the marker. */
const isPdf = (head: Uint8Array, declared: boolean): boolean => {
  const marker = "%PDF-";
  if (/^[\0\t\n\f\r ]*%PDF-/.test(letters(head))) return true;
  return declared && find(head.subarray(0, 1024), marker) >= 0;
};

const isHtml = (head: Uint8Array): boolean => {
  const text = new TextDecoder("utf-8").decode(head.subarray(0, 1024)).toLowerCase();
  let rest = text.trimStart();
  if (rest.startsWith("<?xml") && rest.includes("?>")) rest = rest.slice(rest.indexOf("?>") + 2).trimStart();
  while (rest.startsWith("<!--")) {
    const end = rest.indexOf("-->", 4);
    rest = end < 0 ? "" : rest.slice(end + 3).trimStart();
  }
  return rest.startsWith("<!doctype html") || rest.startsWith("<html");
};

/** Text has no NUL (but UTF-16 with its mark has) and few other control characters. */
const looksLikeText = (head: Uint8Array): boolean => {
  if (starts(head, "\xff\xfe") || starts(head, "\xfe\xff")) return true;
  const odd = head.filter((byte) => byte < 0x20 && ![0x09, 0x0a, 0x0d, 0x0c, 0x1b].includes(byte)).length;
  return !head.includes(0) && odd * 20 <= head.length;
};

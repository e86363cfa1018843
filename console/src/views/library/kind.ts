// What a file is and is called, before it goes into the library: by its content, then its name. The reader of documents
// has the last word; this is so that the list says something at once.

const ENDINGS: Record<string, string> = {
  pdf: "application/pdf",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  html: "text/html",
  htm: "text/html",
  md: "text/markdown",
  markdown: "text/markdown",
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  json: "application/json",
  xml: "application/xml",
  yaml: "application/yaml",
  yml: "application/yaml",
};

const NAMES: Record<string, string> = {
  "application/pdf": "PDF",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
  "text/html": "HTML",
  "text/markdown": "Markdown",
  "text/csv": "CSV",
  "text/tab-separated-values": "TSV",
  "application/json": "JSON",
  "application/xml": "XML",
  "application/yaml": "YAML",
  "text/plain": "text",
};

/** A kind for people. */
export const kindName = (mime: string): string => NAMES[mime] ?? mime;

/** What a file is: kind and title, or why nothing can read it. */
export type Looked = { kind: string; title: string } | { refused: string };

/** Bytes that tell the kind. */
const HEAD = 64 * 1024;

export const look = (name: string, content: Uint8Array): Looked => {
  const head = new TextDecoder("latin1").decode(content.subarray(0, HEAD));
  const ending = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  const declared = ENDINGS[ending] ?? "text/plain";
  if (content.length === 0) return { refused: "is empty" };
  if (/^\s*%PDF-/.test(head)) return { kind: ENDINGS.pdf!, title: pdfTitle(content) || name };
  if (head.startsWith("PK\x03\x04")) {
    return ending === "docx" || head.includes("word/")
      ? { kind: ENDINGS.docx!, title: name }
      : { refused: "is an archive, a spreadsheet or an e-book, which are not read; convert it to PDF or text" };
  }
  if (declared === ENDINGS.pdf) return { refused: "is called a PDF but is not a PDF" };
  if (declared === ENDINGS.docx) return { refused: "is called a Word document but is none" };
  const wide = head.startsWith("\xff\xfe") || head.startsWith("\xfe\xff");
  if (!wide && head.includes("\0")) return { refused: "is binary, not text" };
  const text = new TextDecoder(wide ? (head.startsWith("\xff\xfe") ? "utf-16le" : "utf-16be") : "utf-8").decode(content.subarray(0, HEAD));
  if (!text.trim()) return { refused: "has no text" };
  const kind = /^\s*(<\?xml[^>]*>\s*)?(<!--[^]*?-->\s*)*<(!doctype html|html)/i.test(text) ? "text/html" : declared;
  return { kind, title: textTitle(kind, text) || name };
};

const textTitle = (kind: string, text: string): string => {
  if (kind === "text/html") return htmlTitle(text);
  if (kind !== "text/markdown") return "";
  return /^#\s+(.+?)\s*#*\s*$/m.exec(text)?.[1] ?? "";
};

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };

/** The title of a web page. It is found as text: no text of others becomes a document here. */
const htmlTitle = (text: string): string => {
  const title = /<title[^>]*>([^]*?)<\/title\s*>/i.exec(text)?.[1] ?? "";
  const plain = title.replace(/&(?:#(\d{1,6})|#x([0-9a-f]{1,5})|(\w{2,6}));/gi, (whole, decimal, hex, name) => {
    if (name) return ENTITIES[String(name).toLowerCase()] ?? whole;
    const point = decimal ? Number(decimal) : parseInt(String(hex), 16);
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
  return plain.replace(/\s+/g, " ").trim();
};

/** The title in a PDF's information, where it stands there as plain text. */
const pdfTitle = (content: Uint8Array): string => {
  const whole = new TextDecoder("latin1").decode(content.subarray(0, 8 << 20));
  const title = /\/Title\s*\(((?:[^()\\]|\\[()\\])*)\)/.exec(whole)?.[1] ?? "";
  return title.startsWith("\xfe\xff") ? "" : title.replace(/\\([()\\])/g, "$1").trim();
};

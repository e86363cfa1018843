// What a document calls itself: in the information of a PDF, the head of a web page, the front matter or the first
// heading of Markdown. Only looks, and finds it as text: nothing of others becomes a document here.
import { leniently, ofHtml } from "./charset.js";
import { pdfTitle } from "./pdf.js";

export type Kind = "pdf" | "html" | "docx" | "text";

export const MARKDOWN = "text/markdown";

/** Longest title in characters; the rest is cut off. */
const LONGEST = 200;
/** Bytes in which the title of a page or a text stands, if it has one. */
const HEAD = 64 * 1024;

/** The title; empty if it says none. */
export const title = async (kind: Kind, mime: string, content: Uint8Array<ArrayBuffer>): Promise<string> => {
  if (kind === "pdf") return tidy(await pdfTitle(content));
  if (kind !== "html" && mime !== MARKDOWN) return "";
  const head = content.subarray(0, HEAD);
  const { text, guessed } = leniently(head, kind === "html" ? ofHtml(head) : undefined);
  const found = tidy(kind === "html" ? htmlTitle(text) : markdownTitle(text));
  // In a charset that nobody declared only ASCII is certain.
  return guessed && /[^\0-\x7f]/.test(found) ? "" : found;
};

/** On one line and not too long; empty for what names nothing. */
const tidy = (text: string): string => {
  const words = text.split(/[\p{White_Space}\p{Cc}]+/u).filter(Boolean);
  const whole = words.join(" ").replace(/^Microsoft Word - /, "");
  const names = /[\p{Alphabetic}\p{N}]/u.test(whole) && !whole.includes("\ufffd");
  if (!names || ["untitled", "untitled document"].includes(whole.toLowerCase())) return "";
  return [...whole].slice(0, LONGEST).join("");
};

const htmlTitle = (text: string): string => {
  // Of the same length, so that places agree.
  const lower = text.replace(/[A-Z]+/g, (some) => some.toLowerCase());
  const open = lower.indexOf("<title");
  const begin = open < 0 ? -1 : lower.indexOf(">", open);
  const end = begin < 0 ? -1 : lower.indexOf("</title", begin);
  return end < 0 ? "" : unescaped(text.slice(begin + 1, end));
};

const ENTITIES = new Map<string, string>(
  Object.entries({ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " ", ndash: "–", mdash: "—", hellip: "…", copy: "©" }),
);

/** The entities that stand in titles. */
const unescaped = (text: string): string =>
  text.replace(/&(?:#([0-9]{1,10})|#[xX]([0-9a-fA-F]{1,9})|([a-z]{2,6}));/g, (whole, decimal, hex, name) => {
    if (name) return ENTITIES.get(String(name)) ?? whole;
    const point = decimal ? Number(decimal) : parseInt(String(hex), 16);
    const is = point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
    return is ? String.fromCodePoint(point) : whole;
  });

/** The title of the front matter, else the first heading. */
const markdownTitle = (text: string): string => {
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  let at = 0;
  if (lines[0]?.trimEnd() === "---") {
    let found: string | undefined;
    for (at = 1; at < lines.length; at++) {
      const line = lines[at]!;
      if (["---", "..."].includes(line.trimEnd())) break;
      if (line.startsWith("title:")) found = line.slice(6).trim().replace(/^["']+|["']+$/g, "");
    }
    at += 1;
    if (found !== undefined) return found;
  }
  let [fenced, before] = [false, ""];
  for (; at < lines.length; at++) {
    const line = lines[at]!.trim();
    if (line.startsWith("```") || line.startsWith("~~~")) fenced = !fenced;
    else if (fenced) continue;
    else {
      const heading = /^#{1,6}[ \t](.*)$/.exec(line);
      if (heading) return heading[1]!.trim().replace(/#+$/, "").trimEnd();
      if (before && /^={2,}$/.test(line)) return before;
    }
    before = line;
  }
  return "";
};

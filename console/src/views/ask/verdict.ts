// Whether an answer that is there can be relied on: each sentence is held against the passages as the library has them.
// The judgement is the server's, the same as `tg verify-trace`; here its words are chosen.
import { content, judged, type Sentence } from "../../client/services.js";
import { failure, type Citation } from "../../client/wire.js";

export interface Verdict {
  /** Every sentence rests on a passage, and quotes it rightly. */
  mood: "good" | "warn" | "bad";
  word: string;
  sentences: Sentence[];
}

/** Passages that are looked up at a time. */
const AT_ONCE = 8;

/** The texts that the numbers name; `lost` are those that the library does not have. */
const passages = async (citations: Citation[]): Promise<{ found: { n: number; text: string }[]; lost: number[] }> => {
  const texts = new Map<string, string>();
  const chunks = [...new Set(citations.map((one) => one.chunk).filter(Boolean))];
  for (let at = 0; at < chunks.length; at += AT_ONCE) {
    const some = chunks.slice(at, at + AT_ONCE);
    const found = await Promise.all(some.map((chunk) => content(chunk).catch((why: unknown) => unless(why, "not-found"))));
    some.forEach((chunk, place) => texts.set(chunk, found[place] ?? ""));
  }
  const found = citations.map((one) => ({ n: one.n, text: texts.get(one.chunk) ?? "" }));
  const lost = citations.filter((one) => one.chunk && !texts.get(one.chunk)).map((one) => one.n);
  return { found, lost };
};

/** Nothing for a failure of that kind; any other one goes on. */
const unless = (why: unknown, kind: string): string => {
  if (failure(why).kind === kind) return "";
  throw why;
};

const some = (count: number, of: number, one: string, several: string): string =>
  `${count} of ${of} ${of === 1 ? "sentence" : "sentences"} ${count === 1 ? one : several}`;

const inWords = (sentences: Sentence[], refused: boolean, lost: number[]): Omit<Verdict, "sentences"> => {
  const of = sentences.length;
  const count = (support: Sentence["support"]): number => sentences.filter((one) => one.support === support).length;
  const [wrong, nothing] = [count("misquoted"), count("nothing")];
  if (lost.length > 0) return { mood: "bad", word: `Not verified: the library does not have ${numbers(lost)}.` };
  if (refused) return { mood: "warn", word: "Nothing to verify: no answer was found." };
  if (sentences.every((one) => one.by.length === 0)) return { mood: "warn", word: "Not verified: the answer cites nothing." };
  if (wrong > 0) return { mood: "bad", word: `Not verified: ${some(wrong, of, "quotes", "quote")} what does not stand in its passage.` };
  if (nothing > 0) return { mood: "warn", word: `${some(nothing, of, "is", "are")} supported by nothing.` };
  return { mood: "good", word: "Every sentence is supported." };
};

/** `[1], [2]`. */
export const numbers = (by: number[]): string => by.map((one) => `[${one}]`).join(", ");

export const verdict = async (answer: string, citations: Citation[], refused: boolean): Promise<Verdict> => {
  const { found, lost } = await passages(citations);
  const sentences = await judged(answer, found);
  return { ...inWords(sentences, refused, lost), sentences };
};

// What travels on the socket, as far as the page reads it. Everything in it was written by others: texts are shown as
// text, never as markup.

/** A JSON object of which nothing is known. */
export type Json = Record<string, unknown>;

/** An RDF term. */
export type Term = { t: "i"; i: string } | { t: "b"; d: string } | { t: "l"; v: string } | { t: "t"; tr: Triple };

/** An RDF triple, in a graph if it names one. */
export interface Triple {
  s?: Term;
  p?: Term;
  o?: Term;
  g?: string;
}

/** What a number in an answer names. */
export interface Citation {
  n: number;
  document: string;
  title: string;
  page: number | null;
  chunk: string;
  text: string;
}

/** Why something was not done. */
export class Failure extends Error {
  readonly kind: string;
  constructor(kind: string, message: string) {
    super(message || kind);
    this.kind = kind;
  }
}

export const text = (of: Json | undefined, key: string): string => {
  const value = of?.[key];
  return typeof value === "string" ? value : "";
};

export const list = <T = Json>(of: Json | undefined, key: string): T[] => {
  const value = of?.[key];
  return Array.isArray(value) ? (value as T[]) : [];
};

export const object = (of: Json | undefined, key: string): Json => {
  const value = of?.[key];
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Json) : {};
};

/** An error as the gateway writes it: text, or type and message. */
export const failure = (error: unknown): Failure => {
  if (error instanceof Failure) return error;
  if (typeof error === "string") return new Failure("error", error);
  const said = error as Json;
  return new Failure(text(said, "type") || "error", text(said, "message"));
};

/** A term as text. */
export const plain = (term: Term | undefined): string => {
  switch (term?.t) {
    case "i":
      return term.i;
    case "b":
      return term.d;
    case "l":
      return term.v;
    case "t":
      return [term.tr.s, term.tr.p, term.tr.o].map(plain).join(" · ");
    default:
      return "";
  }
};

// How a processing stands, in words.
import { object, text, type Json } from "../../client/wire.js";

export interface Standing {
  mood: "good" | "warn" | "bad" | "wait";
  word: string;
  part: number;
  of: number;
}

export const standing = (run: Json): Standing => {
  const count = (key: string): number => Number(object(run, "progress")[key] ?? 0);
  const [part, of] = [count("records"), count("records-total")];
  const status = text(run, "status");
  const warnings = Number(run["warnings"] ?? 0);
  const chunks = count("chunks-total") > 0 ? `, ${count("chunks")} of ${count("chunks-total")} chunks` : "";
  switch (status) {
    case "complete":
      if (warnings > 0) return { mood: "warn", word: `complete with ${warnings} ${warnings === 1 ? "warning" : "warnings"}`, part, of };
      return { mood: "good", word: status, part, of };
    case "submitted":
      return { mood: "good", word: status, part, of };
    case "processing":
      return { mood: "wait", word: `processing${chunks}`, part, of };
    case "failed":
      return { mood: "bad", word: "failed", part, of };
    default:
      return { mood: "warn", word: status || "unknown", part, of };
  }
};

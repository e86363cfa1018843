// One line: whether questions would be answered, and by which model.
import { signal } from "@preact/signals";
import { doctor, models, type Check } from "../client/services.js";
import { standing } from "../client/session.js";
import { useLoaded } from "./loaded.js";

/** The last checks, for whoever shows them. */
export const checks = signal<Check[]>([]);

const look = async (): Promise<string> => {
  const [found, offered] = await Promise.all([doctor(), models().catch(() => [])]);
  checks.value = found;
  return offered.length === 1 ? (offered[0] ?? "") : "";
};

export const State = () => {
  const { data: only, error } = useLoaded(look);
  const model = checks.value.find((check) => check.name === "language model");
  const vectors = checks.value.find((check) => check.name === "embeddings");
  const ready = checks.value.find((check) => check.name === "default flow ready");
  const failed = checks.value.filter((check) => !check.ok).length;
  const [mood, word] =
    standing.value === "lost"
      ? ["bad", "Connection lost, trying again"]
      : error
        ? ["bad", error]
        : !ready
          ? ["wait", "Connecting"]
          : !ready.ok
            ? ["bad", "Not ready"]
            : failed > 0
              ? ["warn", `Ready, ${failed} of ${checks.value.length} checks failed`]
              : ["good", "Ready"];
  return (
    <div class="state" role="status">
      <a href="#/health" class={`pill ${mood}`}>
        {word}
      </a>
      {model && (
        <span>
          <span class="label">Model</span> {model.ok ? only || model.detail : model.detail}
        </span>
      )}
      {vectors && (
        <span>
          <span class="label">Vectors</span> {vectors.detail.split(",")[0]}
        </span>
      )}
    </div>
  );
};

// One line: whether questions would be answered, and by which model.
import { signal } from "@preact/signals";
import { doctor, models, type Check } from "../client/services.js";
import { connection, standing } from "../client/session.js";
import { useLoaded } from "./loaded.js";

/** The last checks, for whoever shows them. */
export const checks = signal<Check[]>([]);

/** The checks are many questions: they follow what the view shows, after so many milliseconds at the latest. */
const LATEST = 250;

const look = async (): Promise<void> => {
  await connection.rest(LATEST);
  // The next connection looks again.
  if (standing.value === "open") checks.value = await doctor();
};

/** The model, where there is only one: it is known before all checks are. */
const oneModel = async (): Promise<string> => {
  const offered = await models().catch(() => []);
  return offered.length === 1 ? (offered[0] ?? "") : "";
};

export const State = () => {
  const { error } = useLoaded(look);
  const { data: only } = useLoaded(oneModel);
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
            : model?.ok === false
              ? ["bad", `Cannot answer, ${failed} of ${checks.value.length} checks failed`]
            : failed > 0
              ? ["warn", `Ready, ${failed} of ${checks.value.length} checks failed`]
              : ["good", "Ready"];
  return (
    <div class="state" role="status">
      <a href="#/health" class={`pill ${mood}`}>
        {word}
      </a>
      {(model || only) && (
        <span>
          <span class="label">Model</span> {model?.ok === false ? model.detail : only || model?.detail}
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

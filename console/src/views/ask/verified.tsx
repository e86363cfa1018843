// The verdict on an answer, and sentence by sentence what it rests on.
import type { Sentence } from "../../client/services.js";
import { numbers, type Verdict } from "./verdict.js";

const SIGNS: Record<Verdict["mood"], string> = { good: "✓", warn: "–", bad: "✗" };

const MOODS: Record<Sentence["support"], Verdict["mood"]> = { passages: "good", misquoted: "bad", refusal: "warn", nothing: "warn" };

const rests = ({ support, by, misquoted }: Sentence): string[] => {
  switch (support) {
    case "passages":
      return [`supported by ${numbers(by)}`];
    case "misquoted":
      return (misquoted ?? []).map((quoted) => `quoted wrongly: “${quoted}” does not stand in ${numbers(by)}`);
    case "refusal":
      return ["says that there is no answer"];
    case "nothing":
      return ["supported by nothing"];
  }
};

const Sign = ({ mood }: { mood: Verdict["mood"] }) => (
  <span class={`mark ${mood}`} aria-hidden="true">
    {SIGNS[mood]}
  </span>
);

export const Verified = ({ verdict, error }: { verdict: Verdict | undefined; error: string }) => (
  <div class="verified">
    <p role="status">
      {verdict && <Sign mood={verdict.mood} />}
      {verdict?.word}
    </p>
    {error && <p class="error">The answer could not be verified: {error}</p>}
    {verdict && verdict.sentences.length > 0 && (
      <details>
        <summary>Sentence by sentence</summary>
        <ol aria-label="What each sentence rests on">
          {verdict.sentences.map((sentence, at) => (
            <li key={at}>
              <Sign mood={MOODS[sentence.support]} />
              <div>
                {sentence.text}
                {rests(sentence).map((line) => (
                  <p key={line} class="muted">
                    {line}
                  </p>
                ))}
              </div>
            </li>
          ))}
        </ol>
      </details>
    )}
  </div>
);

// What is wrong, and what to do about it: the checks of `tg doctor`, and the models on offer.
import { doctor, models } from "../../client/services.js";
import { Inline } from "../../parts/inline.js";
import { useLoaded } from "../../parts/loaded.js";
import { checks as shared } from "../../parts/state.js";

export const Health = () => {
  const { data, error, again } = useLoaded(async () => (shared.value = await doctor()));
  const offered = useLoaded(models);
  const failed = data?.filter((check) => !check.ok).length ?? 0;
  return (
    <>
      <div class="head">
        <h1>Health</h1>
        <button type="button" class="quiet" onClick={() => void again()}>
          Check again
        </button>
      </div>
      <p role="status">
        {error || (!data ? "Looking…" : failed === 0 ? "Every check passed." : `${failed} of ${data.length} checks failed.`)}
      </p>
      <ul class="rows checks">
        {data?.map((check) => (
          <li key={check.name}>
            <span class={`mark ${check.ok ? "good" : "bad"}`} role="img" aria-label={check.ok ? "passed" : "failed"}>
              {check.ok ? "✓" : "✗"}
            </span>
            <div>
              <strong>{check.name}</strong>
              <p>
                <Inline text={check.detail} />
              </p>
              {!check.ok && check.advice && (
                <p class="advice">
                  Try: <Inline text={check.advice} />
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
      <h2>Models on offer</h2>
      {offered.error && <p class="error">{offered.error}</p>}
      <ul class="plain">
        {offered.data?.slice(0, 100).map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </>
  );
};

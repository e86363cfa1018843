// Follows an answer over as many connections as it takes: a run of the agent is joined again where it was.
import type { Following } from "./connection.js";
import { drop, keep } from "./kept.js";
import { connection, round } from "./session.js";
import { Failure, failure, type Json } from "./wire.js";

/** Failures of the connection, not of the run. */
const AWAY = ["lost", "auth-failure"];

/** Waits for the next connection. */
const reconnected = (signal: AbortSignal): Promise<void> =>
  new Promise((done, failed) => {
    const before = round.value;
    const end = round.subscribe((now) => {
      if (now === before) return;
      end();
      done();
    });
    signal.addEventListener("abort", () => {
      end();
      failed(new Failure("cancelled", "stopped"));
    });
  });

/** `run`: the one that `begin` joins; without it, the parts say which it is. */
export const follow = async (
  begin: (following: Following) => Promise<Json>,
  { part, signal }: { part: (part: Json) => void; signal: AbortSignal },
  run?: string,
): Promise<void> => {
  let place: { run: string; offset?: number } | undefined = run ? { run } : undefined;
  const following: Following = {
    signal,
    part: (one, at) => {
      if (at && !place) keep(at.run);
      place = at ?? place;
      part(one);
    },
  };
  try {
    for (let going = begin(following); ; ) {
      try {
        await going;
        return;
      } catch (why) {
        if (!place || !AWAY.includes(failure(why).kind)) throw why;
      }
      await reconnected(signal);
      going = connection.resume(place, following);
    }
  } finally {
    if (place) drop(place.run);
  }
};

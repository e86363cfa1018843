// Data that a view shows: asked for when the view comes, and again when the connection is a new one.
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { round } from "../client/session.js";
import { failure } from "../client/wire.js";

export interface Loaded<T> {
  data: T | undefined;
  error: string;
  again: () => Promise<void>;
}

/** `key`: what the data depends on. */
export const useLoaded = <T>(load: () => Promise<T>, key = ""): Loaded<T> => {
  const [data, setData] = useState<T>();
  const [error, setError] = useState("");
  const turn = useRef(0);
  const again = useCallback(async () => {
    const mine = ++turn.current;
    try {
      const found = await load();
      if (mine === turn.current) setData(() => found), setError("");
    } catch (why) {
      // A lost connection is said once, at the top, and what was seen stays.
      if (mine === turn.current && failure(why).kind !== "lost") setError(failure(why).message);
    }
  }, [key]);
  // At once, not after the next frame.
  useLayoutEffect(() => {
    if (round.value > 0) void again();
    return () => void (turn.current += 1);
  }, [round.value, again]);
  return { data, error, again };
};

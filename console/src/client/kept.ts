// Ids of the runs that are under way on this page, in the store of this tab: after a reload the page joins them again.
// An id opens nothing by itself: only who asked for a run can join it. Nothing else is stored, and never a key.

const KEY = "threadgraph-runs";
/** Runs that are joined again at most. */
const MOST = 50;

/** The oldest first. An unreadable list counts as empty. */
export const kept = (): string[] => {
  try {
    const found: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((id) => typeof id === "string").slice(-MOST) : [];
  } catch {
    return [];
  }
};

/** A browser may refuse the store: then a reload forgets the run. */
const write = (runs: string[]): void => {
  try {
    if (runs.length > 0) sessionStorage.setItem(KEY, JSON.stringify(runs.slice(-MOST)));
    else sessionStorage.removeItem(KEY);
  } catch {
    // The browser refuses the store.
  }
};

export const keep = (run: string): void => {
  const runs = kept();
  if (!runs.includes(run)) write([...runs, run]);
};

export const drop = (run: string): void => write(kept().filter((one) => one !== run));

/** Forgets all of them. */
export const forget = (): void => write([]);

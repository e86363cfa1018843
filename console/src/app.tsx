// The frame around the views: who answers and how it stands, the way between views, and the question for a token where
// the gateway wants one.
import { useLayoutEffect, useRef } from "preact/hooks";
import { named, signOut, standing } from "./client/session.js";
import { route } from "./parts/route.js";
import { State } from "./parts/state.js";
import { SignIn } from "./views/signin/index.js";
import { views } from "./views/index.js";

const shown = () => views.find((view) => view.path === route.value) ?? views[0]!;

export const App = () => {
  const view = shown();
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  // Before it is painted: a key that is pressed at once goes to the new view.
  useLayoutEffect(() => {
    document.title = `${view.name} · Threadgraph`;
    if (!first.current) main.current?.focus();
    first.current = false;
  }, [view]);
  const refused = standing.value === "refused";
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="#/">
          <img src="/assets/icon.svg" alt="" width="26" height="26" /> Threadgraph
        </a>
        {!refused && (
          <nav aria-label="Views">
            {views.map((one) => (
              <a key={one.path} href={`#/${one.path}`} aria-current={one === view ? "page" : undefined}>
                {one.name}
              </a>
            ))}
            <a href="/docs">Docs</a>
          </nav>
        )}
        {named.value && !refused && (
          <button type="button" class="quiet" onClick={signOut}>
            Sign out
          </button>
        )}
      </header>
      {!refused && <State />}
      <main id="main" ref={main} tabIndex={-1}>
        {refused ? <SignIn /> : <view.show />}
      </main>
    </>
  );
};

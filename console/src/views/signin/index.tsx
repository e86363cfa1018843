// Asks for a token. It is kept in memory: a reload asks again.
import { useState } from "preact/hooks";
import { signIn, wrong } from "../../client/session.js";
import { Inline } from "../../parts/inline.js";

export const SignIn = () => {
  const [token, setToken] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    signIn(token.trim());
  };
  return (
    <section class="card narrow">
      <h1>Sign in</h1>
      <p class="muted">This gateway wants to know who asks. The key stays in this page's memory; a reload forgets it.</p>
      <form onSubmit={submit}>
        <label for="token">API key or token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          value={token}
          aria-invalid={wrong.value}
          aria-describedby="token-wrong"
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <p id="token-wrong" class="error" role="alert">
          {wrong.value && "That token is not accepted. It may be mistyped, expired or revoked."}
        </p>
        <button type="submit">Sign in</button>
      </form>
      <p class="muted">
        <Inline text="No key yet? `tg bootstrap-iam` makes the first one of a fresh system, `tg create-api-key` further ones." />
      </p>
    </section>
  );
};

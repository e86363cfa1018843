// Asks for a token, or for name and password, for which the gateway gives one. It is kept in memory: a reload asks again.
import { useState } from "preact/hooks";
import { logIn, signIn, wrong } from "../../client/session.js";
import { Inline } from "../../parts/inline.js";

/** Name and password, for an hour. */
const ByPassword = () => {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFault(await logIn(name.trim(), password));
    setPassword("");
    setBusy(false);
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <label for="username">User name</label>
      <input
        id="username"
        autocomplete="username"
        spellcheck={false}
        required
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <label for="password">Password</label>
      <input
        id="password"
        type="password"
        autocomplete="current-password"
        required
        value={password}
        aria-invalid={fault !== ""}
        aria-describedby="password-wrong"
        onInput={(event) => setPassword(event.currentTarget.value)}
      />
      <p id="password-wrong" class="error" role="alert">
        {fault}
      </p>
      <button type="submit" disabled={busy}>
        Log in
      </button>
    </form>
  );
};

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
      <h2>With a password</h2>
      <ByPassword />
      <p class="muted">
        <Inline text="No key yet? `tg bootstrap-iam` makes the first one of a fresh system, `tg create-api-key` further ones." />
      </p>
    </section>
  );
};

// The one connection of the page, and what every view may see of it.
import { signal } from "@preact/signals";
import { Connection, type Standing } from "./connection.js";
import { forget } from "./kept.js";

const scheme = location.protocol === "https:" ? "wss" : "ws";

export const connection = new Connection(`${scheme}://${location.host}/api/v1/socket`);

/** How the connection stands. */
export const standing = signal<Standing>("connecting");

/** Counts connections: what is shown is asked for again when a new one stands. */
export const round = signal(0);

/** Whether a token was said that is not accepted; the first try is without one. */
export const wrong = signal(false);

/** Whether a token was said at all, so that it can be forgotten. */
export const named = signal(false);

/** The flow and the collection that questions and documents go to. */
export const flow = signal("default");
export const collection = signal("default");

connection.onStanding = (now) => {
  standing.value = now;
  if (now === "open") round.value += 1;
  if (now === "refused") {
    wrong.value = named.value;
    named.value = false;
  }
};

/** Connects as whom the token says. */
export const signIn = (token: string): void => {
  named.value = token !== "";
  wrong.value = false;
  connection.connect(token);
};

/** Connects as whom name and password say. What is wrong, if anything is; the password goes nowhere else and is not kept. */
export const logIn = async (username: string, password: string): Promise<string> => {
  try {
    const answer = await fetch("/api/v1/auth/login", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username, password }),
    });
    const told: unknown = await answer.json();
    const jwt = told && typeof told === "object" && "jwt" in told ? told.jwt : undefined;
    if (answer.ok && typeof jwt === "string") {
      signIn(jwt);
      return "";
    }
    return answer.status === 401 ? "Name or password is wrong, or the user is disabled." : "The gateway cannot log anybody in now; try again.";
  } catch {
    return "The gateway does not answer; try again.";
  }
};

/** Forgets the token with all that was asked and dropped under it: the page begins anew. */
export const signOut = (): void => {
  forget();
  window.location.reload();
};

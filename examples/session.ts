// A session with an agent: one turn that is waited for, one that is read as it comes, and what was said.
//
// Usage: node session.ts URL [TOKEN]. Needs a Node.js that reads TypeScript (22.18 or later), and nothing else.

const AGENT = "concise-de";
const USER = "ann";

interface Session {
  id: string;
}

interface Answer {
  content: string;
}

interface Said {
  messages: { role: string; content: string | null }[];
}

async function main(url: string, token: string): Promise<void> {
  // Whoever sends a message again under the same X-Request-Id gets the answer of the first time.
  const send = async (method: string, path: string, body?: object): Promise<Response> => {
    const headers: Record<string, string> = {
      "Content-Type": "application/json",
      "SPASS-User-Id": USER,
      "X-Request-Id": crypto.randomUUID(),
    };
    if (token) headers["Authorization"] = `Bearer ${token}`;
    const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return response;
  };
  const call = async <T>(method: string, path: string, body?: object): Promise<T> =>
    (await (await send(method, path, body)).json()) as T;

  const sessions = `/a1/agents/${AGENT}/sessions`;
  const session = `${sessions}/${(await call<Session>("POST", sessions, {})).id}`;

  const answer = await call<Answer>("POST", `${session}/messages`, { message: "Was ist eine Laterne?" });
  console.log(answer.content);

  const stream = await send("POST", `${session}/messages/stream`, { message: "Und wozu braucht man sie?" });
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream.body as unknown as AsyncIterable<Uint8Array>) {
    const events = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const found = /^event: (.*)\ndata: (.*)$/.exec(event);
      if (!found) continue;
      const data = JSON.parse(found[2]);
      if (found[1] === "token") process.stdout.write(data.delta);
      // What came before a call of a tool was no answer.
      if (found[1] === "token-reset") process.stdout.write("\n");
      if (found[1] === "error") throw new Error(`the agent failed: ${found[2]}`);
    }
  }
  console.log();

  const said = await call<Said>("GET", `${session}/messages`);
  console.log(said.messages.length, "messages");
  await send("DELETE", session);
}

main(process.argv[2].replace(/\/$/, ""), process.argv[3] ?? "").catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

// Fifty questions at once over the page's own connection: every piece of every answer comes, in order, to its question.
// Usage: node streams.mjs <url>
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { tell, violations, withBrowser } from "./browser.mjs";

const [url] = process.argv.slice(2);

tell(
  await withBrowser(async (open) => {
    const page = await open(url);
    await page.locator(".state .pill.good").waitFor();
    const built = readdirSync(join(import.meta.dirname, "../dist"));
    const entry = `/assets/${built.find((name) => /^connection-.*\.js$/.test(name))}`;
    const streams = await page.evaluate(async (script) => {
      const { Connection } = await import(script);
      const connection = new Connection(`ws://${location.host}/api/v1/socket`);
      connection.connect("");
      const one = async (number) => {
        const said = { thought: "", action: "", observation: "", answer: "", pieces: 0, ends: 0 };
        await connection.ask({
          service: "agent",
          flow: "default",
          request: { question: `What? nonce-page-${number}-x`, streaming: true },
          part: (part) => {
            if (part.message_type === "explain") return;
            said[part.message_type] += part.content ?? "";
            said.pieces += 1;
            if (part.end_of_dialog) said.ends += 1;
          },
        });
        return said;
      };
      return Promise.all(Array.from({ length: 50 }, (_, number) => one(number)));
    }, entry);
    return { entry, streams, violations: await violations(page) };
  }),
);

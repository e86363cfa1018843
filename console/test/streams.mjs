// Fifty questions at once over the page's own connection: every piece of every answer comes, in order, to its question.
// One that is asked alone before them says what each has to be made of. Usage: node streams.mjs <url>
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
    const seen = await page.evaluate(async (script) => {
      const { Connection } = await import(script);
      const connection = new Connection(`ws://${location.host}/api/v1/socket`);
      connection.connect("");
      // Where pieces end depends on who is faster; what they say together, which messages they are and what explains them does not.
      const one = async (number) => {
        const nonce = `nonce-page-${String(number).padStart(2, "0")}-x`;
        const said = { nonce, thought: "", action: "", observation: "", answer: "", ended: [], explained: [], pieces: 0, ends: 0 };
        await connection.ask({
          service: "agent",
          flow: "default",
          request: { question: `What? ${nonce}`, streaming: true },
          part: (part) => {
            if (part.end_of_dialog) said.ends += 1;
            if (part.message_type === "explain") return said.explained.push(part.explain_triples?.length ?? 0);
            said[part.message_type] += part.content ?? "";
            said.pieces += 1;
            if (part.end_of_message) said.ended.push(part.message_type);
          },
        });
        return said;
      };
      const control = await one(99);
      return { control, streams: await Promise.all(Array.from({ length: 50 }, (_, number) => one(number))) };
    }, entry);
    return { entry, ...seen, violations: await violations(page) };
  }),
);

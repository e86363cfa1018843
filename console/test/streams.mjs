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
      // Questions of one length, so that their answers are cut at the same places.
      const one = async (number) => {
        const nonce = `nonce-page-${String(number).padStart(2, "0")}-x`;
        const said = { nonce, thought: "", action: "", observation: "", answer: "", pieces: [], explained: [], ends: 0 };
        await connection.ask({
          service: "agent",
          flow: "default",
          request: { question: `What? ${nonce}`, streaming: true },
          part: (part) => {
            if (part.end_of_dialog) said.ends += 1;
            if (part.message_type === "explain") return said.explained.push(part.explain_triples?.length ?? 0);
            said[part.message_type] += part.content ?? "";
            said.pieces.push(`${part.message_type} ${(part.content ?? "").replaceAll(/\d/g, "0")}`);
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

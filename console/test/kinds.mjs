// What the page says of files before they are added, for each case of `kinds.json`: the command line is held against the
// same table. Usage: node kinds.mjs <url>
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { tell, withBrowser } from "./browser.mjs";

const [url] = process.argv.slice(2);
const cases = JSON.parse(readFileSync(join(import.meta.dirname, "kinds.json"), "utf8"));
const files = cases.map(({ name, text, base64 }) => ({ name, content: base64 ?? Buffer.from(text).toString("base64") }));

tell(
  await withBrowser(async (open) => {
    const page = await open(url);
    const built = readdirSync(join(import.meta.dirname, "../dist"));
    const entry = `/assets/${built.find((name) => /^kind-.*\.js$/.test(name))}`;
    const looked = await page.evaluate(
      async ([script, given]) => {
        const { look } = await import(script);
        const one = ({ name, content }) => look(name, Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0)));
        return Promise.all(given.map(one));
      },
      [entry, files],
    );
    return { looked };
  }),
);

// A newcomer on the page: three documents dropped in, a question, the citation's passage, the trace's steps; then the
// server goes and comes back, and the answer is the same. One document is full of markup, which stays text.
// Usage: node newcomer.mjs <url> <folder of documents>. When the first half is done it prints a line and waits for one.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { once } from "node:events";
import { ask, drop, tell, violations, withBrowser } from "./browser.mjs";

const [url, folder] = process.argv.slice(2);
const files = readdirSync(folder).map((name) => ({ name, content: readFileSync(join(folder, name)).toString("base64") }));
const QUESTION = "Who built the Harrowgate lantern?";
const HOSTILE = "What does the Gribble notice say about the Gribble lamp?";

const texts = (locator) => locator.allInnerTexts();

const seen = await withBrowser(async (open) => {
  const page = await open(url);
  const told = {};
  told.state = await page.locator(".state", { hasText: "Model" }).innerText();
  await page.getByRole("link", { name: "Library" }).click();
  await drop(page, files);
  const documents = page.getByRole("list", { name: "Documents", exact: true });
  await documents.locator("li").nth(files.length - 1).waitFor();
  told.standings = await texts(page.locator(".run .pill"));
  await page.waitForFunction(
    (count) => [...document.querySelectorAll(".run .pill")].filter((one) => one.textContent === "complete").length === count,
    files.length,
  );
  told.sent = await texts(page.getByRole("region", { name: "Added now" }).locator("li"));
  told.documents = await texts(documents.locator("li"));

  await page.getByRole("link", { name: "Ask" }).click();
  const turn = await ask(page, QUESTION);
  told.answer = await turn.locator(".answer").innerText();
  told.sources = await texts(turn.locator(".sources li"));
  await turn.locator(".cite").first().click();
  const dialog = page.getByRole("dialog");
  await dialog.locator("mark").waitFor();
  told.passage = {
    title: await dialog.getByRole("heading").innerText(),
    text: await dialog.locator(".passage").innerText(),
    mark: await dialog.locator("mark").innerText(),
  };
  await page.keyboard.press("Escape");
  told.closed = (await page.getByRole("dialog").count()) === 0;
  told.focusBack = await page.evaluate(() => document.activeElement?.className);
  await turn.locator(".steps > summary").click();
  told.steps = await texts(turn.locator(".step"));
  for (const step of await turn.locator(".step").all()) await step.click();
  await turn.locator(".opened .passage").first().waitFor();
  told.opened = await texts(turn.locator(".opened dl"));

  const agent = await ask(page, QUESTION, "agent");
  told.agent = {
    answer: await agent.locator(".answer").innerText(),
    kinds: [...new Set(await texts(agent.locator(".work .label").locator("visible=true")))],
    hidden: await agent.locator(".work").count(),
  };
  await agent.locator(".thinking summary").click();
  told.agent.kinds = [...new Set(await texts(agent.locator(".work .label")))];

  const hostile = await ask(page, HOSTILE);
  told.hostile = { answer: await hostile.locator(".answer").innerText(), html: await hostile.locator(".answer p").innerHTML() };
  await hostile.locator(".cite").first().click();
  await page.getByRole("dialog").locator("mark").waitFor();
  told.hostile.passage = await page.getByRole("dialog").locator(".passage").innerText();
  await page.keyboard.press("Escape");
  told.ran = await page.evaluate(() => window.ran ?? null);
  told.markup = await page.locator("main script, main iframe, main b, main img").count();
  told.violations = await violations(page);

  process.stdout.write("first half\n");
  process.stdin.resume();
  await once(process.stdin, "data");
  // The page is the same one: it finds the way back by itself.
  await page.locator(".state .pill.good").waitFor();
  const again = await ask(page, QUESTION);
  told.again = await again.locator(".answer").innerText();
  await page.getByRole("link", { name: "Traces" }).click();
  const row = page.locator(".rows > li", { hasText: QUESTION }).last();
  await row.locator(".step").first().click();
  await row.locator(".trace .step").nth(2).waitFor();
  told.stored = await texts(row.locator(".trace .step"));
  return told;
});
process.stdin.pause();
// While the server is away the browser says so itself.
seen.faults = seen.faults.filter((fault) => !fault.includes("ERR_CONNECTION_REFUSED"));
tell(seen);

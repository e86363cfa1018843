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
/** One for each document. */
const QUESTIONS = [QUESTION, "Who calibrated the Corvane gauge?", HOSTILE];

/** Notes, from within the page, what is seen only for moments. */
const watch = () => {
  window.passing = { runs: [], status: [], thinking: [] };
  const note = (list, text) => text && !list.includes(text) && list.push(text);
  const look = () => {
    for (const run of document.querySelectorAll(".run")) {
      const bar = run.querySelector("progress");
      if (bar) note(window.passing.runs, `${run.querySelector(".pill")?.textContent} (${bar.value} of ${bar.max} records)`);
    }
    const library = location.hash === "#/library" && document.querySelector("main > p[role=status]")?.textContent;
    if (library) note(window.passing.status, library);
    const thought = document.querySelector('.turn[aria-busy="true"] .work.thought p')?.textContent;
    if (thought) note(window.passing.thinking, thought);
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
};

/** An answer, where it is from, and what its sentences rest on. */
const answered = async (turn) => {
  const verified = turn.locator(".verified");
  await verified.locator(".mark").first().waitFor();
  const sources = turn.locator(".sources li");
  return {
    answer: await turn.locator(".answer").innerText(),
    sources: await sources.evaluateAll((all) =>
      all.map((one) => ({
        number: one.querySelector(".number").textContent,
        title: one.querySelector("strong").textContent,
        quotation: one.querySelector("q").textContent,
      })),
    ),
    verdict: await verified.locator("p[role=status]").innerText(),
    sentences: await verified.locator("li").evaluateAll((all) => all.map((one) => one.textContent)),
  };
};

const texts = (locator) => locator.allInnerTexts();

const seen = await withBrowser(async (open) => {
  const page = await open(url, {}, watch);
  const told = {};
  await page.locator(".state .pill.good").waitFor();
  told.state = await page.locator(".state").innerText();
  await page.getByRole("link", { name: "Library", exact: true }).click();
  await drop(page, files);
  const documents = page.getByRole("list", { name: "Documents", exact: true });
  await documents.locator("li").nth(files.length - 1).waitFor();
  await page.waitForFunction(
    (count) => [...document.querySelectorAll(".run .pill")].filter((one) => one.textContent === "complete").length === count,
    files.length,
  );
  await page.getByText("nothing is being processed").waitFor();
  told.passing = await page.evaluate(() => window.passing);
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
  // Each text comes by itself, in its own time.
  await page.waitForFunction(() => [...document.querySelectorAll(".opened dl span")].every((text) => text.textContent !== "…"));
  told.opened = await texts(turn.locator(".opened dl"));

  const agent = await ask(page, QUESTION, "agent");
  told.agent = {
    answer: await agent.locator(".answer").innerText(),
    kinds: [...new Set(await texts(agent.locator(".work .label").locator("visible=true")))],
    hidden: await agent.locator(".work").count(),
  };
  told.thinking = await page.evaluate(() => window.passing.thinking);
  await agent.locator(".thinking summary").click();
  told.agent.kinds = [...new Set(await texts(agent.locator(".work .label")))];

  const hostile = await ask(page, HOSTILE);
  told.hostile = { answer: await hostile.locator(".answer").innerText(), html: await hostile.locator(".answer p").innerHTML() };
  await hostile.locator(".cite").first().click();
  await page.getByRole("dialog").locator("mark").waitFor();
  told.hostile.passage = await page.getByRole("dialog").locator(".passage").innerText();
  await page.keyboard.press("Escape");
  told.before = [];
  for (const question of QUESTIONS) told.before.push(await answered(await ask(page, question)));
  told.ran = await page.evaluate(() => window.ran ?? null);
  told.markup = await page.locator("main script, main iframe, main b, main img").count();
  told.violations = await violations(page);

  process.stdout.write("first half\n");
  process.stdin.resume();
  await once(process.stdin, "data");
  // The page is the same one: it finds the way back by itself.
  await page.locator(".state .pill.good").waitFor();
  told.after = [];
  for (const question of QUESTIONS) told.after.push(await answered(await ask(page, question)));
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

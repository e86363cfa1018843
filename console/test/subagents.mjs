// The tree of subagents: it fills while the run goes on, each opens by a key to its steps and its answer, and texts of the
// model stay text. Then subagents that have subagents of their own.
// Usage: node subagents.mjs <url>. While one subagent is under way it prints a line and waits for one.
import { once } from "node:events";
import { ask, tell, violations, withBrowser } from "./browser.mjs";

const [url] = process.argv.slice(2);

/** Notes, from within the page, every state that a subagent is shown in, by its goal, and every count. */
const watch = () => {
  window.passing = { states: {}, counts: [] };
  const note = (list, text) => text && list.at(-1) !== text && list.push(text);
  const look = () => {
    for (const node of document.querySelectorAll(".subagent > .step")) {
      const state = node.querySelector(".pill").textContent;
      const goal = node.textContent.slice(state.length).trim();
      note((window.passing.states[goal] ??= []), state);
    }
    note(window.passing.counts, document.querySelector(".subagents > p")?.textContent);
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
};

const nodes = (turn) => turn.locator(".subagent > .step").allInnerTexts();

/** Opens every subagent by the keyboard, and waits until what it looks up is there. */
const opened = async (page, turn) => {
  for (const step of await turn.locator(".subagent > .step").all()) {
    if ((await step.getAttribute("aria-expanded")) === "true") continue;
    await step.focus();
    await page.keyboard.press("Enter");
  }
  await page.waitForFunction(() => [...document.querySelectorAll(".found")].every((text) => text.textContent !== "Looking it up…"));
  return turn.locator(".subagent > .opened").allInnerTexts();
};

/** Subagents within subagents, as lists in lists. */
const tree = (turn) =>
  turn.locator(".subagents > .branch").evaluate((root) => {
    const below = (branch) =>
      [...(branch?.children ?? [])].map((node) => ({
        shown: node.querySelector(".step").textContent,
        below: below(node.querySelector(":scope > .branch")),
      }));
    return below(root);
  });

const seen = await withBrowser(async (open) => {
  const page = await open(url, {}, watch);
  const told = {};
  await page.locator(".state .pill.good").waitFor();
  await page.selectOption("#service", "supervisor");
  await page.fill("#question", "What are the measures?");
  await page.press("#question", "Enter");
  const turn = page.locator(".turn").first();
  await turn.getByText("2 of 3 subagents done, 1 failed").waitFor();
  // The one that is not done has used its tool, and waits for the model.
  await opened(page, turn);
  await page.waitForFunction(() => document.querySelectorAll(".subagent .work.observation").length === 2);
  told.underWay = { nodes: await nodes(turn), opened: await opened(page, turn), busy: await turn.getAttribute("aria-busy") };
  process.stdout.write("under way\n");
  process.stdin.resume();
  await once(process.stdin, "data");
  await turn.and(page.locator('[aria-busy="false"]')).waitFor();
  told.passing = await page.evaluate(() => window.passing);
  told.end = {
    count: await turn.locator(".subagents > p").innerText(),
    nodes: await nodes(turn),
    opened: await opened(page, turn),
    answer: await turn.locator(".answer").innerText(),
  };
  await turn.locator(".thinking summary").click();
  told.own = await turn.locator(".thinking .work").allInnerTexts();
  told.html = await turn.locator(".branch").first().innerHTML();
  told.markup = await page.locator("main b, main script, main img").count();
  const first = turn.locator(".subagent > .step").first();
  await first.focus();
  await page.keyboard.press("Enter");
  told.closed = await first.getAttribute("aria-expanded");

  const nested = await ask(page, "Delegate it: twice", "agent");
  told.nested = {
    count: await nested.locator(".subagents > p").innerText(),
    tree: await tree(nested),
  };
  const dispatched = await ask(page, "Dispatch it: three", "agent");
  told.dispatched = { count: await dispatched.locator(".subagents > p").innerText(), nodes: await nodes(dispatched) };
  told.passing.counts = await page.evaluate(() => window.passing.counts);
  told.violations = await violations(page);
  return told;
});
process.stdin.pause();
tell(seen);

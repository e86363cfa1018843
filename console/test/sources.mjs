// A turn of an agent that calls a tool and was given passages: the call is seen while it is under way, and the passages open.
// Usage: node sources.mjs <url> <name of the agent> <question>
import { tell, violations, withBrowser } from "./browser.mjs";

const [url, name, question] = process.argv.slice(2);

/** Notes, from within the page, which calls are seen while the turn is under way. */
const watch = () => {
  window.calls = [];
  const look = () => {
    for (const call of document.querySelectorAll('.conversation[aria-busy="true"] .call')) {
      if (!window.calls.includes(call.textContent)) window.calls.push(call.textContent);
    }
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
};

const texts = (locator) => locator.evaluateAll((all) => all.map((one) => one.textContent));

/** Titles of the sources of the only answer, which are looked up one by one. */
const titles = async (page) => {
  await page.locator(".said.agent .from > summary").click();
  await page.waitForFunction(() => {
    const all = [...document.querySelectorAll(".said.agent .sources li")];
    return all.length > 0 && all.every((one) => one.querySelector("strong"));
  });
  return texts(page.locator(".said.agent .sources strong"));
};

tell(
  await withBrowser(async (open) => {
    const page = await open(`${url}#/agents`, {}, watch);
    const told = {};
    await page.getByRole("button", { name: `Talk to ${name}` }).click();
    await page.fill("#message", question);
    await page.press("#message", "Enter");
    await page.waitForFunction(() => document.querySelectorAll('.conversation[aria-busy="false"] > .said').length === 2);
    told.answer = await page.locator(".said.agent > p").textContent();
    told.underWay = await page.evaluate(() => window.calls);
    told.calls = await texts(page.locator(".said.agent .call"));
    told.sources = await titles(page);
    await page.locator(".said.agent .sources button").first().click();
    const dialog = page.getByRole("dialog");
    await dialog.locator(".passage").waitFor();
    told.passage = { title: await dialog.getByRole("heading").innerText(), text: await dialog.locator(".passage").innerText() };
    await page.keyboard.press("Escape");
    told.closed = (await page.getByRole("dialog").count()) === 0;
    await page.reload();
    await page.getByRole("button", { name: `Talk to ${name}` }).click();
    await page.selectOption("#conversation", { label: question });
    await page.locator(".said").nth(1).waitFor();
    told.again = await titles(page);
    told.violations = await violations(page);
    return told;
  }),
);

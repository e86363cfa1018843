// A conversation: an agent that is like a template, two messages to it, and what is there when the page comes again.
// Usage: node agents.mjs <url>
import { tell, violations, withBrowser } from "./browser.mjs";

const [url] = process.argv.slice(2);

/** Sends a message, and waits until it is answered. */
const say = async (page, text) => {
  const before = await page.locator(".said").count();
  await page.fill("#message", text);
  await page.press("#message", "Enter");
  const answered = (count) => document.querySelectorAll('.conversation[aria-busy="false"] > .said').length >= count;
  await page.waitForFunction(answered, before + 2);
};

const said = (page) => page.locator(".said").evaluateAll((all) => all.map((one) => [one.className, one.querySelector("p").textContent]));

tell(
  await withBrowser(async (open) => {
    const page = await open(`${url}#/agents`);
    const told = {};
    await page.getByRole("button", { name: "Add Sage" }).click();
    await page.getByRole("heading", { name: "Sage", level: 1 }).waitFor();
    await say(page, "What is a lamp?");
    told.first = await said(page);
    await say(page, "And a lantern?");
    told.both = await said(page);
    await page.reload();
    await page.getByRole("button", { name: "Talk to Sage" }).first().click();
    await page.selectOption("#conversation", { label: "What is a lamp?" });
    await page.locator(".said").nth(3).waitFor();
    told.again = await said(page);
    told.violations = await violations(page);
    return told;
  }),
);

// A browser for the stories: what it complains about is part of what they tell. Each story is given the address of a
// gateway and prints one JSON object of what was seen.
import { chromium } from "playwright-core";

/** As long as anything may take on a busy machine. */
export const PATIENCE = 60_000;

/** Starts it and calls `work` with a way to open pages; returns what `work` does, and what went wrong on any page. */
export const withBrowser = async (work) => {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // The machine's own boundary is what containers give; the browser's own needs privileges there.
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  const faults = [];
  const open = async (url, options = {}, script) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on("pageerror", (error) => faults.push(`error: ${error}`));
    page.on("console", (message) => message.type() === "error" && faults.push(`console: ${message.text()} ${message.location().url}`));
    // A file that the page gives to save is its own.
    const hostOf = (address) => new URL(address.replace(/^blob:/, "")).host;
    page.on("request", (request) => hostOf(request.url()) !== hostOf(url) && faults.push(`foreign: ${request.url()}`));
    await page.addInitScript(() => {
      window.violations = [];
      addEventListener("securitypolicyviolation", (event) => {
        window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
      });
    });
    if (script) await page.addInitScript(script);
    await page.goto(url);
    return page;
  };
  try {
    return { ...(await work(open)), faults };
  } finally {
    await browser.close();
  }
};

/** What the policy of the page forbade. */
export const violations = (page) => page.evaluate(() => window.violations);

/** Asks, and waits for the end of the answer. */
export const ask = async (page, question, service = "document-rag") => {
  const before = await page.locator(".turn").count();
  await page.selectOption("#service", service);
  await page.fill("#question", question);
  await page.press("#question", "Enter");
  await page.waitForFunction((count) => document.querySelectorAll(".turn").length > count, before);
  const turn = page.locator(".turn").first();
  await turn.and(page.locator('[aria-busy="false"]')).waitFor();
  return turn;
};

/** Drops files on the library, as a hand does. */
export const drop = async (page, files) => {
  const data = await page.evaluateHandle((given) => {
    const transfer = new DataTransfer();
    for (const { name, content } of given) {
      const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0));
      transfer.items.add(new File([bytes], name));
    }
    return transfer;
  }, files);
  await page.locator(".drop").dispatchEvent("dragover", { dataTransfer: data });
  await page.locator(".drop").dispatchEvent("drop", { dataTransfer: data });
};

/** Prints what was seen. */
export const tell = (seen) => process.stdout.write(`${JSON.stringify(seen)}\n`);

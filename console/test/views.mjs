// What the views of the system show where the model is away: which check failed and what helps, the flow by its name, and
// a file that is under way; and every endpoint of both descriptions. Before that, what the page asks while its style is still
// on the way, and in which order. Usage: node views.mjs <url> <file>
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { drop, tell, violations, withBrowser } from "./browser.mjs";

const [url, file] = process.argv.slice(2);
const { parse } = createRequire(join(import.meta.dirname, "../package.json"))("yaml");
const spec = (name) => parse(readFileSync(join(import.meta.dirname, "../../specs/api", `${name}.yaml`), "utf8"), { maxAliasCount: -1 });

/** What is to be there, in the order of the descriptions. */
const wanted = () => {
  const rest = Object.entries(spec("openapi").paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`));
  const channels = Object.values(spec("asyncapi").channels);
  const socket = channels.flatMap(({ address, messages }) => Object.keys(messages).map((name) => `${address} ${name}`));
  return { rest: rest.sort(), socket: socket.sort() };
};

const docs = async (page) => {
  await page.goto(`${url}docs`);
  const region = (name) => page.getByRole("region", { name, exact: true });
  await region("WebSocket").locator(".entry").first().waitFor();
  const rest = await region("REST").locator(".entry").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  const socket = await region("WebSocket")
    .locator(".entry")
    .evaluateAll((all) => all.map((one) => `${one.parentElement.getAttribute("aria-label")} ${one.querySelector("code").textContent}`));
  return { rest: rest.sort(), socket: socket.sort() };
};

/** Notes what the page asks of services. */
const note = () => {
  window.asked = [];
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (frame) {
    const { service, request } = JSON.parse(frame);
    if (service) window.asked.push(`${service} ${request?.operation ?? ""}`);
    return send.call(this, frame);
  };
};

/** Loads the page anew and keeps its style back until it has asked something; what it asked. */
const withoutStyle = async (page) => {
  await page.getByText("The library is empty.").waitFor();
  const { promise, resolve } = Promise.withResolvers();
  const style = "**/*.css";
  await page.route(style, async (route) => {
    await promise;
    await route.continue();
  });
  await page.reload({ waitUntil: "commit" });
  // Not by frames: there are none before the style is there.
  await page.waitForFunction(() => window.asked?.length > 0, undefined, { polling: 20 });
  resolve();
  await page.waitForFunction(() => window.asked.includes("flow doctor"));
  await page.unroute(style);
  return page.evaluate(() => window.asked);
};

tell(
  await withBrowser(async (open) => {
    const page = await open(`${url}#/library`, {}, note);
    const told = { asked: await withoutStyle(page) };
    await page.getByText("The library is empty.").waitFor();
    await drop(page, [{ name: basename(file), content: readFileSync(file).toString("base64") }]);
    const row = page.getByRole("list", { name: "Documents", exact: true }).locator("li").first();
    // Known once the document was cut.
    await row.getByText(/processing, \d+ of \d+ chunks/).waitFor();
    told.underWay = {
      word: await row.locator(".pill").innerText(),
      most: Number(await row.getByRole("progressbar").getAttribute("max")),
      status: await page.locator("main > p[role=status]").innerText(),
    };
    await page.getByRole("link", { name: "Health", exact: true }).click();
    const failed = page.locator(".checks li", { hasText: "language model" });
    await failed.getByRole("img", { name: "failed" }).waitFor();
    told.failed = { name: await failed.locator("strong").innerText(), advice: await failed.locator(".advice").innerText() };
    told.state = await page.locator(".state .pill").innerText();
    await page.getByRole("link", { name: "Flows", exact: true }).click();
    const card = page.locator(".cards > li").first();
    await card.waitFor();
    told.flow = { name: await card.getByRole("heading").innerText(), text: await card.innerText() };
    told.violations = await violations(page);
    told.shown = await docs(page);
    told.wanted = wanted();
    return told;
  }),
);

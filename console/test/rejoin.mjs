// Runs that are under way when the page is loaded anew go on where they were, and so they do when the connection breaks.
// One of two is stopped then. The store of the tab has the ids of runs and nothing else.
// Usage: node rejoin.mjs <url> [<key>]. When both runs are joined again it prints a line and waits for one.
import { once } from "node:events";
import { tell, violations, withBrowser } from "./browser.mjs";

const [url, key] = process.argv.slice(2);
const QUESTIONS = ["What? nonce-page-1", "What? nonce-page-2"];

const signIn = async (page) => {
  if (key) {
    await page.getByLabel("API key or token").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
  }
  await page.locator(".state .pill.good").waitFor();
};

/** The turns that wait for the model behind their first step, as they are shown. */
const shown = async (page) => {
  for (const question of QUESTIONS) {
    const turn = page.locator('.turn[aria-busy="true"]', { hasText: question });
    await turn.locator(".work.observation").waitFor();
    await turn.getByText("Trace · 4 steps").waitFor();
  }
  const turns = await page.locator(".turn").all();
  return Promise.all(
    turns.map(async (turn) => ({
      question: await turn.getByRole("heading").innerText(),
      work: await turn.locator(".work").allInnerTexts(),
      steps: await turn.locator(".steps .step").allTextContents(),
    })),
  );
};

const stored = (page) => page.evaluate(() => ({ session: { ...sessionStorage }, local: { ...localStorage }, cookie: document.cookie }));

const seen = await withBrowser(async (open) => {
  const page = await open(url);
  const told = {};
  // From now on the connection can be broken.
  let connection;
  let connected = () => {};
  await page.routeWebSocket(/socket/, (socket) => {
    socket.connectToServer();
    connection = socket;
    connected();
  });
  await page.reload();
  await signIn(page);
  for (const question of QUESTIONS) {
    await page.selectOption("#service", "agent");
    await page.fill("#question", question);
    await page.press("#question", "Enter");
    await page.locator(".turn", { hasText: question }).locator(".work.observation").waitFor();
  }
  told.before = await shown(page);
  told.stored = await stored(page);
  await page.reload();
  await signIn(page);
  told.reloaded = await shown(page);
  const another = new Promise((done) => (connected = done));
  await connection.close();
  await another;
  await page.locator(".state .pill.good").waitFor();
  told.reconnected = await shown(page);
  const stopped = page.locator(".turn", { hasText: QUESTIONS[1] });
  await stopped.getByRole("button", { name: "Stop" }).click();
  told.stopped = await stopped.getByRole("alert").innerText();
  told.left = await stored(page);
  process.stdout.write("joined\n");
  process.stdin.resume();
  await once(process.stdin, "data");
  const turn = page.locator(".turn", { hasText: QUESTIONS[0] });
  await turn.and(page.locator('[aria-busy="false"]')).waitFor();
  told.answer = await turn.locator(".answer").innerText();
  told.work = await turn.locator(".work").evaluateAll((all) => all.map((one) => one.textContent));
  told.over = await stored(page);
  await page.reload();
  await signIn(page);
  told.again = await page.locator(".turn").count();
  told.violations = await violations(page);
  return told;
});
process.stdin.pause();
tell(seen);

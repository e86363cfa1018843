// A gateway that wants a key: a wrong one is told, the right one opens the page, and neither is kept anywhere. The same with
// name and password.
// Usage: node signin.mjs <url> <key> <user name> <password>
import { ask, tell, violations, withBrowser } from "./browser.mjs";

const [url, key, user, password] = process.argv.slice(2);

tell(
  await withBrowser(async (open) => {
    const page = await open(url);
    const told = {};
    // While it is empty it is not shown.
    const alert = page.locator("#token-wrong");
    const field = page.getByLabel("API key or token");
    await field.waitFor();
    told.first = await alert.textContent();
    told.hidden = await field.getAttribute("type");
    await field.fill("tg_wrong");
    await page.keyboard.press("Enter");
    await page.getByText("That token is not accepted").waitFor();
    told.wrong = await alert.textContent();
    await page.getByLabel("API key or token").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".state .pill.good").waitFor();
    told.state = await page.locator(".state").innerText();
    const turn = await ask(page, "What? nonce-page-x", "agent");
    told.answer = await turn.locator(".answer").innerText();
    const kept = (secret) => page.evaluate(async (secret) => {
      const stores = [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie, location.href];
      const bases = (await indexedDB.databases?.())?.length ?? 0;
      const urls = performance.getEntriesByType("resource").map((one) => one.name);
      return { found: [...stores, ...urls].filter((one) => one.includes(secret)).length, bases, html: document.documentElement.outerHTML.includes(secret) };
    }, secret);
    told.kept = await kept(key);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("API key or token").waitFor();
    told.signedOut = await alert.textContent();
    // A wrong one is a status that the browser itself complains of.
    await page.getByLabel("User name").fill(user);
    await page.getByLabel("Password", { exact: true }).fill(password);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.locator(".state .pill.good").waitFor();
    told.byPassword = await page.locator(".state").innerText();
    told.passwordKept = await kept(password);
    await page.reload();
    await page.getByLabel("API key or token").waitFor();
    told.violations = await violations(page);
    return told;
  }),
);

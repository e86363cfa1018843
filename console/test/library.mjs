// What is done with a document of the library: a file that is there is not added again, a document is opened and saved,
// processed, tried again after it failed, put into another collection, and deleted once that is confirmed.
// Usage: node library.mjs <url> <file that was added by the command>
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { drop, tell, violations, withBrowser } from "./browser.mjs";

const [url, file] = process.argv.slice(2);
const given = { name: basename(file), content: readFileSync(file).toString("base64") };
const TITLE = "The lamps of Pellworth";

tell(
  await withBrowser(async (open) => {
    const page = await open(`${url}#/library`);
    const told = {};
    const rows = page.getByRole("list", { name: "Documents", exact: true }).locator("li");
    const row = (title) => rows.filter({ hasText: title });
    const press = (name) => page.getByRole("button", { name, exact: true }).click();
    const sent = page.getByRole("region", { name: "Added now" }).locator("li");
    await row(TITLE).waitFor();

    await drop(page, [given]);
    await sent.first().getByText("already there", { exact: true }).waitFor();
    told.again = { documents: await row(TITLE).count(), runs: await row(TITLE).locator(".run").count() };

    await press(`Open ${TITLE}`);
    const dialog = page.getByRole("dialog");
    await dialog.locator(".passage").waitFor();
    told.text = await dialog.locator(".passage").innerText();
    const [saved] = await Promise.all([page.waitForEvent("download"), dialog.getByRole("button", { name: "Download" }).click()]);
    told.saved = { name: saved.suggestedFilename(), text: readFileSync(await saved.path(), "utf8") };
    await page.keyboard.press("Escape");

    await press("Process Notes");
    await row("Notes").getByText("complete", { exact: true }).waitFor();
    told.failed = await row("Terms").locator(".run").innerText();
    await press("Retry Terms");
    await row("Terms").getByText(/^complete/).waitFor();

    await page.getByLabel("Collection", { exact: true }).selectOption("second");
    await drop(page, [given]);
    await row(TITLE).getByText("in second").waitFor();
    told.second = { documents: await row(TITLE).count(), runs: await row(TITLE).locator(".run").count() };

    // Two equal files at once, so large that they go in parts.
    const twin = Buffer.from(`# Twins\n\nOne of two.\n${"\n".repeat(2 << 20)}`).toString("base64");
    await drop(page, ["twins.md", "copy.md"].map((name) => ({ name, content: twin })));
    await sent.filter({ hasText: "Twins" }).getByText("already there", { exact: true }).waitFor();
    await row("Twins").first().waitFor();
    told.twins = await row("Twins").count();

    await press("Delete Notes");
    told.question = await dialog.getByRole("heading").innerText();
    await dialog.getByRole("button", { name: "Close" }).click();
    told.kept = await row("Notes").count();
    await press("Delete Notes");
    await dialog.getByRole("button", { name: "Delete it" }).click();
    await row("Notes").waitFor({ state: "detached" });
    await page.reload();
    await row(TITLE).waitFor();
    told.left = await rows.locator("strong").allInnerTexts();
    told.violations = await violations(page);
    return told;
  }),
);

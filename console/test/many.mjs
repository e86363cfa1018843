// A library of more documents than a page of a listing has: all are counted, the newest come first, and what is dropped
// in is there at once and followed to its end. Usage: node many.mjs <url> <how many there are> <title of the oldest>
import { PATIENCE, drop, tell, violations, withBrowser } from "./browser.mjs";

const [url, before, oldest] = process.argv.slice(2);

tell(
  await withBrowser(async (open) => {
    const page = await open(`${url}#/library`);
    const told = {};
    const rows = page.getByRole("list", { name: "Documents", exact: true }).locator("li");
    const status = page.locator("main > p[role=status]");
    // They are put in faster than they are processed.
    await page.getByText(`${before} documents, nothing is being processed.`).waitFor({ timeout: 3 * PATIENCE });
    told.first = await rows.first().locator("strong").innerText();
    told.rows = await rows.count();
    await drop(page, [{ name: "latest.md", content: Buffer.from("# The latest of all\n\nIt is made of tin.\n").toString("base64") }]);
    const own = rows.filter({ hasText: "The latest of all" });
    await own.getByText("complete", { exact: true }).waitFor();
    told.own = await rows.first().locator("strong").innerText();
    await page.getByText("nothing is being processed").waitFor();
    told.status = await status.innerText();
    await page.getByRole("button", { name: "Show more" }).click();
    told.more = await rows.count();
    await page.getByLabel("Filter documents").fill(oldest);
    await page.waitForFunction(() => document.querySelectorAll(".documents li").length === 1);
    told.found = await rows.first().innerText();
    // Another page, or this one anew, has it from the listing.
    await page.reload();
    await rows.first().waitFor();
    told.again = await rows.first().innerText();
    told.violations = await violations(page);
    return told;
  }),
);

// Takes the picture of the page that README.md shows: node console/test/picture.mjs ADDRESS FILE. The library at the address
// holds demo/documents/uncommon-clocks.pdf.
import { ask, withBrowser } from "./browser.mjs";

const [address, file] = process.argv.slice(2);
const seen = await withBrowser(async (open) => {
  const page = await open(address, { viewport: { width: 1080, height: 760 }, colorScheme: "light" });
  const turn = await ask(page, "Which mountain is the meridian of Nepal Standard Time close to?", "agent");
  await turn.getByText("Every sentence is supported.").waitFor();
  await page.screenshot({ path: file });
  return { answer: await turn.innerText() };
});
console.log(JSON.stringify(seen));

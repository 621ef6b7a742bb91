// Opens the page and runs a call. Started by the test `it_works_offline` in a network without anything else.
import { networkInterfaces } from "node:os";
import { launch, removeFolders, start, until, WAIT, watch } from "./harness.mjs";

const outside = Object.entries(networkInterfaces()).filter(([name]) => name !== "lo");
if (outside.length > 0) throw new Error(`there is another network: ${outside.map(([name]) => name)}`);
const complaints = [];
const host = await start(process.argv[2], ["up", "--port", "0"]);
const context = await launch();
try {
  const page = context.pages()[0] ?? (await context.newPage());
  watch(page, complaints);
  await page.goto(host.link);
  await page.waitForURL(`${host.origin}/`);
  const run = page.locator("[data-run]");
  await run.waitFor({ timeout: WAIT });
  await until("the button is ready", () => run.isEnabled());
  await run.click();
  await page.locator(".verdict.ok").waitFor({ timeout: WAIT });
  for (const [place, selector] of [["#/traffic", ".grid-row:not([hidden])"], ["#/explore", "a.entry"], ["#/inbox", ".inbox-list"]]) {
    await page.evaluate((to) => { location.hash = to; }, place);
    await page.locator(selector).first().waitFor({ timeout: WAIT });
  }
  // Every picture and letter comes from the program or the system.
  const sources = await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => new URL(entry.name).origin));
  if (sources.some((origin) => origin !== host.origin)) throw new Error(`loaded from ${sources}`);
  if (complaints.length > 0) throw new Error(complaints.join("\n"));
  console.log("a call was made offline");
} finally {
  await context.close();
  await host.stop();
  await removeFolders();
}

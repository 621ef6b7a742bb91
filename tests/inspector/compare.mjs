// Measures two inspectors: what they load, when they paint, and how they are with many messages.
// Usage: node compare.mjs BINARY FOLDER_OF_THE_OTHER [MESSAGES] [ROUNDS]
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { environment, folder, launch, removeFolders, root, start, until } from "./harness.mjs";

const [binary, folderOfOther, messages = "20000", rounds = "5"] = process.argv.slice(2);
const other = resolve(folderOfOther);
const server = [process.execPath, join(root, "tests/inspector/server.mjs"), "forms"];
const { version } = JSON.parse(readFileSync(join(other, "package.json"), "utf8"));
const CONNECTED = 60_000;
/** How long a page may take to show the messages; one that is too busy is measured as it is then. */
const SHOWN = 120_000;

/** How to start each one, open it, and show its messages. */
const candidates = [
  {
    name: "bowline",
    start: async (command) => {
      const host = await start(binary, ["inspect", "--", ...command]);
      return { url: `${host.origin}/`, first: host.link, stop: host.stop };
    },
    ready: "#live[data-state=live]",
    usable: "a.entry",
    connect: async () => {},
    showMessages: async (page) => {
      await page.evaluate(() => { location.hash = "#/traffic"; });
      await page.waitForSelector(".grid-row:not([hidden])");
    },
    list: ".grid-body",
  },
  {
    name: `Inspector ${version}`,
    start: async (command) => {
      const home = folder("peer");
      const child = spawn(process.execPath, [join(other, "clients/launcher/build/index.js"), "--web", ...command], { cwd: home, env: { ...environment(home), MCP_AUTO_OPEN_ENABLED: "false", MCP_INSPECTOR_SECRET_STORE: "memory" }, stdio: ["ignore", "pipe", "pipe"], detached: true });
      let output = "";
      child.stdout.on("data", (data) => { output += data; });
      child.stderr.on("data", (data) => { output += data; });
      const url = await until("the address of the other inspector", () => /http:\S+API_TOKEN=\w+/.exec(output)?.[0], CONNECTED);
      return { url, first: url, stop: () => new Promise((resolve) => { child.once("exit", resolve); process.kill(-child.pid, "SIGTERM"); }) };
    },
    ready: "[role=switch]",
    usable: "[role=switch]",
    connect: async (page) => {
      await page.getByRole("switch").first().click({ force: true });
      await page.getByText("Protocol", { exact: true }).first().waitFor({ timeout: CONNECTED });
    },
    showMessages: async (page) => {
      await page.getByText("Protocol", { exact: true }).first().click();
    },
    list: null,
  },
];

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;

/** Loads the page several times without a cache. */
async function load(context, candidate, url) {
  const figures = { paint: [], usable: [], requests: [], bytes: [] };
  for (let round = 0; round < Number(rounds); round += 1) {
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    let [requests, bytes] = [0, 0];
    session.on("Network.requestWillBeSent", () => { requests += 1; });
    session.on("Network.loadingFinished", ({ encodedDataLength }) => { bytes += encodedDataLength; });
    await page.goto(url);
    await page.waitForSelector(candidate.usable, { timeout: CONNECTED });
    figures.usable.push(await page.evaluate(() => performance.now()));
    await page.waitForTimeout(1000);
    figures.paint.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0));
    figures.requests.push(requests);
    figures.bytes.push(bytes);
    await page.close();
  }
  return Object.fromEntries(Object.entries(figures).map(([name, list]) => [name, median(list)]));
}

/** Opens the list of messages and scrolls it from its beginning to its end. */
async function scroll(page, selector) {
  return page.evaluate(async (wanted) => {
    const scrollable = (element) => element.scrollHeight > element.clientHeight + 50 && /auto|scroll/.test(getComputedStyle(element).overflowY);
    // Without a name it is the element with the longest content.
    const body = wanted ? document.querySelector(wanted) : [...document.querySelectorAll("*")].filter(scrollable).sort((a, b) => b.scrollHeight - a.scrollHeight)[0];
    if (!body) return null;
    const frames = [];
    for (let step = 0; step < 60; step += 1) {
      body.scrollTop = ((body.scrollHeight - body.clientHeight) / 60) * step;
      const begun = performance.now();
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
      frames.push(performance.now() - begun);
    }
    frames.sort((a, b) => a - b);
    return { median: frames[30], p95: frames[57], height: body.scrollHeight };
  }, selector);
}

/** The value, or `undefined` if the page is too busy to answer. */
const within = (promise, limit = CONNECTED) => Promise.race([promise.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, limit))]);

async function many(context, candidate) {
  const running = await candidate.start([...server, messages]);
  try {
    return await measureMany(context, candidate, running);
  } finally {
    await running.stop();
  }
}

async function measureMany(context, candidate, running) {
  const page = await context.newPage();
  await page.goto(running.first);
  await page.waitForSelector(candidate.ready, { timeout: CONNECTED });
  const begun = Date.now();
  const isShown = await within(candidate.connect(page).then(() => candidate.showMessages(page)).then(() => true), SHOWN);
  const shown = isShown ? Date.now() - begun : undefined;
  // It is quiet when the page has not changed for two seconds.
  let before = "";
  await until("the messages are shown", async () => {
    await page.waitForTimeout(2000);
    const now = await within(page.evaluate(() => `${document.querySelectorAll("*").length} ${document.body.innerText.length}`), 20_000);
    const same = now !== undefined && now === before;
    before = now;
    return same;
  }, CONNECTED).catch(() => console.log(`  ${candidate.name} is still changing after ${CONNECTED / 1000} s`));
  const session = await context.newCDPSession(page);
  const measured = await within((async () => {
    await session.send("Performance.enable");
    await session.send("HeapProfiler.collectGarbage");
    return Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  })());
  const scrolled = await within(scroll(page, candidate.list));
  await within(page.screenshot({ path: join(root, `target/inspector/shots/compare-${candidate.name.replace(/\W+/g, "-")}.png`) }), 20_000);
  return { shown, heap: measured?.JSHeapUsedSize, nodes: measured?.Nodes, ...scrolled };
}

const results = [];
for (const candidate of candidates) {
  const context = await launch();
  try {
    const running = await candidate.start(server);
    const page = await context.newPage();
    await page.goto(running.first);
    await page.waitForSelector(candidate.ready, { timeout: CONNECTED });
    await page.close();
    const loaded = await load(context, candidate, running.url).finally(() => running.stop());
    results.push({ name: candidate.name, ...loaded, ...(await many(context, candidate)) });
  } catch (error) {
    console.log(`${candidate.name} was not measured: ${error.message}`);
  } finally {
    await context.close();
  }
}
await removeFolders();
const row = (label, read) => console.log(`${label.padEnd(44)}${results.map((each) => String(read(each)).padStart(18)).join("")}`);
const ms = (value) => (value === undefined ? "-" : `${Math.round(value)} ms`);
const or = (value, text) => (value === undefined ? "-" : text(value));
row("", (each) => each.name);
row(`first paint (median of ${rounds})`, (each) => ms(each.paint));
row("usable", (each) => ms(each.usable));
row("requests", (each) => each.requests);
row("bytes received", (each) => `${Math.round(each.bytes / 1000)} kB`);
row(`${messages} messages: shown after`, (each) => or(each.shown, ms));
row("  heap of the page", (each) => or(each.heap, (heap) => `${(heap / 1e6).toFixed(1)} MB`));
row("  nodes", (each) => or(each.nodes, String));
row("  scroll frame, median", (each) => ms(each.median));
row("  scroll frame, p95", (each) => ms(each.p95));
row("  height of the list", (each) => (each.height === undefined ? "-" : `${each.height} px`));
process.exit(0);

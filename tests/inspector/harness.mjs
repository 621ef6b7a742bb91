// Starts the program at a terminal and a browser, and runs the tests one after the other.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createRequire } from "node:module";

export const root = resolve(new URL("../..", import.meta.url).pathname);
export const packages = join(root, "target/inspector/node_modules");
export const shots = join(root, "target/inspector/shots");
const require = createRequire(join(packages, "x.js"));
const { chromium } = require("playwright-core");
export const axeSource = require.resolve("axe-core/axe.min.js");
mkdirSync(shots, { recursive: true });

/** Generous, because the machine may be busy. */
export const WAIT = 20_000;

export async function until(what, condition, limit = WAIT) {
  const end = Date.now() + limit;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

const folders = [];
export function folder(name) {
  const made = mkdtempSync(join(tmpdir(), `bowline-${name}-`));
  folders.push(made);
  return made;
}
/** Removes the folders of this run. A browser that ended may still write for a moment. */
export async function removeFolders() {
  for (const made of folders) await rm(made, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }).catch((error) => console.log(`${made} is left: ${error.message}`));
}
const quote = (word) => `'${String(word).replaceAll("'", "'\\''")}'`;
const plain = (text) => text.replace(/\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r/g, "");

export function environment(home) {
  return { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: join(home, "config"), XDG_STATE_HOME: join(home, "state"), XDG_RUNTIME_DIR: join(home, "run"), TERM: "xterm", LANG: "C.UTF-8", COLUMNS: "200", LINES: "50" };
}

const started = new Set();

/** Starts `bowline ARGUMENTS` at a terminal of its own and waits for the link. */
export async function start(binary, args, { home = folder("home"), config, wantsLink = true } = {}) {
  mkdirSync(join(home, "run"), { recursive: true, mode: 0o700 });
  const work = join(home, "work");
  mkdirSync(work, { recursive: true });
  if (config) writeFileSync(join(home, "bowline.toml"), config);
  const command = ["stty cols 240 rows 60;", "exec", ...[resolve(binary), ...args].map(quote)].join(" ");
  const child = spawn("script", ["-qfec", command, "/dev/null"], { cwd: work, env: environment(home), stdio: ["pipe", "pipe", "pipe"], detached: true });
  let output = "";
  child.stdout.on("data", (data) => { output += data; });
  child.stderr.on("data", (data) => { output += data; });
  const host = {
    home, child, output: () => plain(output), type: (keys) => child.stdin.write(keys),
    async stop() {
      started.delete(host);
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      try { process.kill(-child.pid, "SIGTERM"); } catch { return; }
      const timer = setTimeout(() => { try { process.kill(-child.pid, "SIGKILL"); } catch { /* it ended */ } }, 4000);
      await ended;
      clearTimeout(timer);
    },
  };
  started.add(host);
  if (wantsLink) {
    host.link = await until("the program prints a link", () => {
      if (child.exitCode !== null) throw new Error(`the program ended: ${host.output().slice(-800)}`);
      return /https?:\/\/[0-9a-z.:[\]]+\/open#[A-Za-z0-9_-]+/.exec(host.output())?.[0];
    }, 60_000).catch((error) => { throw new Error(`${error.message}: ${host.output().slice(-800)}`); });
    host.origin = new URL(host.link).origin;
  }
  return host;
}

/** Runs a command to its end. */
export function run(command, args, home, more = {}) {
  return new Promise((done) => {
    const child = spawn(command, args, { cwd: home, env: { ...environment(home), ...more }, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (data) => { output += data; });
    child.stderr.on("data", (data) => { output += data; });
    child.on("exit", (code) => done({ code, output }));
  });
}

export async function launch() {
  const profile = folder("browser");
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: "/usr/bin/chromium", headless: true, viewport: { width: 1280, height: 800 }, permissions: ["clipboard-read", "clipboard-write"], 
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  context.setDefaultTimeout(WAIT);
  await breakPage(context);
  return context;
}

/**
 * Breaks the page on purpose, to see a test fail: each line of `BREAK` is `FILE|TEXT|OTHER TEXT`.
 */
async function breakPage(context) {
  for (const entry of (process.env.BREAK ?? "").split("\n").filter(Boolean)) {
    const [file, from, to = ""] = entry.split("|");
    await context.route(`**/a/*/${file}`, async (route) => {
      const response = await route.fetch();
      let body = await response.text();
      // Several lines may break one file.
      for (const [, one, two = ""] of process.env.BREAK.split("\n").map((each) => each.split("|")).filter(([name]) => name === file)) {
        if (!body.includes(one)) throw new Error(`${file} does not contain ${one}`);
        body = body.replace(one, two);
      }
      await route.fulfill({ response, body });
    });
    if (from === undefined) throw new Error("write FILE|TEXT|OTHER TEXT");
  }
}

/**
 * Starts a browser whose tabs are hidden and focused like those of a person: the other one emulates focus in all of them.
 * @returns a context, and `close`
 */
export async function launchTabs() {
  const profile = folder("tabs");
  const args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,800", "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"];
  const child = spawn("/usr/bin/chromium", args, { stdio: ["ignore", "ignore", "pipe"] });
  let output = "";
  child.stderr.on("data", (data) => { output += data; });
  const address = await until("the browser starts", () => /ws:\/\/\S+/.exec(output)?.[0]);
  const browser = await chromium.connectOverCDP(address, { noDefaults: true });
  const tabs = {
    context: browser.contexts()[0],
    async close() {
      browsers.delete(tabs);
      const ended = new Promise((resolve) => child.once("exit", resolve));
      await browser.close().catch(() => {});
      child.kill("SIGTERM");
      await ended;
    },
  };
  await breakPage(tabs.context);
  browsers.add(tabs);
  return tabs;
}
const browsers = new Set();

/** Watches a page for what must never happen. */
export function watch(page, complaints) {
  page.on("console", (message) => {
    // A refused key and a lost connection are states that tests cause on purpose; the browser reports each as an error.
    if (message.type() === "error" && !/Failed to load resource|net::ERR_|status of 40[0-9]|Access to fetch at/.test(message.text())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (!["blob:", "data:", "about:"].includes(protocol) && hostname !== "127.0.0.1" && hostname !== "localhost") complaints.push(`request to ${request.url().slice(0, 100)}`);
  });
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
}

const tests = [];
export const test = (name, body) => tests.push({ name, body });

/** Runs a test; rejects when it fails or takes longer than the limit. */
async function attempt(body, limit) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`took more than ${limit} ms`)), limit); });
  try {
    await Promise.race([body(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Runs the tests and prints the counts. A test that fails runs once more: a browser on a busy machine can lose a click. */
export async function runAll(words, { limit = 60_000, before = async () => {}, after = async () => {} } = {}) {
  let [passed, failed] = [0, 0];
  for (const { name, body } of tests) {
    if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
    for (const last of process.env.ONCE ? [true] : [false, true]) {
      const begun = Date.now();
      try {
        await before();
        await attempt(body, limit);
        passed += 1;
        console.log(`ok ${name} (${Date.now() - begun} ms)`);
        break;
      } catch (error) {
        if (last) failed += 1;
        console.log(`${last ? "FAILED" : "repeated"} ${name}: ${String(error?.stack ?? error).split("\n").slice(0, 6).join("\n    ")}`);
        await after(name).catch(() => {});
      }
    }
  }
  for (const host of [...started]) await host.stop();
  for (const tabs of [...browsers]) await tabs.close();
  console.log(`browser: ${passed} passed, ${failed} failed`);
  return failed === 0;
}

// The browser tests. Usage: node tests/inspector/browser.mjs BINARY [NAME…]
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { environment, folder, freePort, launch, packages, removeFolders, root, run, runAll, shots, start, until, watch } from "./harness.mjs";
import { access } from "./access.mjs";
import { everywhere } from "./everywhere.mjs";
import { explore } from "./explore.mjs";
import { hostile } from "./hostile.mjs";
import { inbox } from "./inbox.mjs";
import { rules } from "./rules.mjs";
import { openSite } from "./site.mjs";
import { withPalette } from "./palette.mjs";
import { policy } from "./policy.mjs";
import { tasks } from "./tasks.mjs";
import { tabs } from "./tabs.mjs";
import { traffic } from "./traffic.mjs";

const [given = "target/debug/bowline", ...words] = process.argv.slice(2);
const binary = resolve(given);
const script = join(root, "tests/inspector/server.mjs");
const everything = join(packages, "@modelcontextprotocol/server-everything/dist/index.js");
const node = process.execPath;
const port = await freePort();
const entry = (name, command, args, more = "") => `[servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n${more}\n`;
const home = folder("home");
const site = await openSite();
/** A value that only the configuration and the server know. */
const SECRET = "tk-4f9a1c77e2d05b38";
const rule = '[[rules]]\neffect = "ask"\nserver = "forms"\ntool = "wipe"\nreason = "It cannot be undone."\n';
const config = [
  `[gateway]\nconsent = "client"\nallowed_origins = ["${site.origin}"]\n[audit]\nfile = "${join(home, "audit.jsonl")}"\n`,
  `[sampling]\n[sampling.providers.local]\nkind = "openai"\nbase_url = "${site.origin}/v1"\n[[sampling.models]]\nname = "tiny"\nprovider = "local"\n`,
  entry("forms", node, [script, "forms"], `env = { API_TOKEN = "${SECRET}" }`),
  entry("modern", binary, ["serve", "everything"]),
  entry("portal", node, [script, "visit", `${site.origin}/login?state=9f2c41d0`]),
  entry("hostile", node, [script, "hostile"]),
  entry("everything", node, [everything, "stdio"]),
  entry("tickets", "sh", ["-c", "echo TICKETS_TOKEN is not set >&2; exit 1"]),
  rule,
].join("\n");

const complaints = [];
const context = await launch();
context.on("page", (page) => watch(page, complaints));
const newPage = context.newPage.bind(context);
context.newPage = async () => {
  const made = await newPage();
  await made.bringToFront();
  return made;
};
const host = await start(binary, ["-c", join(home, "bowline.toml"), "up", "--port", String(port), "--no-token"], { home, config });
const page = context.pages()[0] ?? (await context.newPage());
watch(page, complaints);

let isStarted = false;
export const world = {
  binary, context, page, host, home, complaints, assert, site, script, secret: SECRET, smallConfig: ['[gateway]\nconsent = "client"\n', entry("forms", node, [script, "forms"]), rule].join("\n"), gateway: `http://127.0.0.1:${port}/mcp`, environment,
  /** Opens the link once and goes to a place. */
  async open(hash = "#/", target = page) {
    const isOpen = target.url().startsWith(`${host.origin}/`) && !target.url().includes("/open") && (await target.evaluate(() => localStorage.getItem("bowline.key") !== null));
    // The pointer stays away from lists, because they stand still while it is over them.
    await target.mouse.move(2, 2);
    if (!isOpen) {
      await target.goto(host.link);
      await target.waitForURL(`${host.origin}/`);
      await target.waitForSelector("#live[data-state=live]");
      // Servers start when they are needed; the tests need them all.
      for (const server of isStarted ? [] : ["forms", "hostile", "everything", "modern", "portal"]) await world.api("/api/act", { action: "start", server }, target);
      isStarted = true;
    }
    await target.evaluate((place) => { location.hash = place; }, hash);
  },
  /** Calls a tool through the gateway, as another program does. */
  call: (tool, ...args) => run(binary, ["call", `http://127.0.0.1:${port}/mcp`, tool, ...args], home),
  /** The same, at the gateway of another host. */
  async callAt(other, tool, ...args) {
    const endpoint = await until("the address of the gateway", () => /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(other.output())?.[0]);
    return run(binary, ["call", endpoint, tool, ...args], other.home);
  },
  run: (command, args) => run(command, args, home),
  /** Asks the API with the key of the page. */
  api: (path, body, target = page) => target.evaluate(async ([where, what]) => {
    const reply = await fetch(where, { method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${localStorage.getItem("bowline.key")}` }, body: JSON.stringify(what) });
    return { status: reply.status, body: await reply.json().catch(() => null) };
  }, [path, body]),
  /** Waits until the buffer has a call from outside, and returns its number. */
  callOf: (name, peer = "") => until(`a call of ${name}`, async () => {
    const { body } = await world.api("/api/query", { query: "calls", after: 0 });
    return body.heads.filter((head) => head.kind === "request" && head.leg === "client" && head.name?.endsWith(name) && head.peer.includes(peer)).at(-1)?.seq;
  }),
  /** Declines every question that waits. */
  async declineAll() {
    for (const question of (await world.api("/api/query", { query: "inbox" })).body.waiting) {
      await world.api("/api/act", { action: "answer", question: question.id, answer: { kind: "decline", scope: "once" } });
    }
  },
  shot: (name) => page.screenshot({ path: join(shots, `${name}.png`) }),
};

access(world);
traffic(world);
explore(world);
hostile(world);
inbox(world);
tabs(world);
rules(world);
policy(world);
tasks(world);
everywhere(world);

const fine = await runAll(words, {
  // No test depends on the filter or the size that another left behind.
  before: async () => {
    // A page behind another tab draws seldom, and everything that waits for a frame is slow.
    await page.bringToFront();
    if (page.viewportSize().width !== 1280) await page.setViewportSize({ width: 1280, height: 800 });
    if (page.url().includes("#/traffic")) await page.evaluate(() => { location.hash = "#/"; });
  },
  after: (name) => world.shot(`failed-${name}`),
});
await context.close();
site.close();
await removeFolders();
if (process.env.DOCS) {
  for (const [from, to] of [["both-legs-light-1280", "traffic"], ["explore-result-light-1280", "explore"], ["home-first-light-1280", "home"], ["task-light-1280", "task"], ["revisions-light-1280", "revisions"], ["rules-changed-light-1280", "definitions"], ["inbox-question-light-1280", "inbox"]]) {
    writeFileSync(join(root, `docs/images/inspector-${to}.png`), withPalette(readFileSync(join(shots, `${from}.png`))));
    assert.ok(statSync(join(root, `docs/images/inspector-${to}.png`)).size < 150_000);
  }
}
process.exit(fine ? 0 : 1);

// The browser tests. Usage: node tests/inspector/browser.mjs BINARY [NAME…]
import assert from "node:assert/strict";
import { copyFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { environment, folder, freePort, launch, packages, root, run, runAll, shots, start, watch } from "./harness.mjs";
import { access } from "./access.mjs";
import { everywhere } from "./everywhere.mjs";
import { explore } from "./explore.mjs";
import { hostile } from "./hostile.mjs";
import { inbox } from "./inbox.mjs";
import { traffic } from "./traffic.mjs";

const [given = "target/debug/bowline", ...words] = process.argv.slice(2);
const binary = resolve(given);
const script = join(root, "tests/inspector/server.mjs");
const everything = join(packages, "@modelcontextprotocol/server-everything/dist/index.js");
const node = process.execPath;
const port = await freePort();
const entry = (name, command, args, more = "") => `[servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n${more}\n`;
const home = folder("home");
const config = [
  "[gateway]\nconsent = \"client\"\n",
  entry("forms", node, [script, "forms"]),
  entry("hostile", node, [script, "hostile"]),
  entry("everything", node, [everything, "stdio"]),
  entry("tickets", "sh", ["-c", "echo TICKETS_TOKEN is not set >&2; exit 1"]),
  '[[rules]]\neffect = "ask"\nserver = "forms"\ntool = "wipe"\nreason = "It cannot be undone."\n',
].join("\n");

const complaints = [];
const context = await launch();
context.on("page", (page) => watch(page, complaints));
const host = await start(binary, ["-c", join(home, "bowline.toml"), "up", "--port", String(port), "--no-token"], { home, config });
const page = context.pages()[0] ?? (await context.newPage());
watch(page, complaints);

export const world = {
  binary, context, page, host, home, complaints, assert, gateway: `http://127.0.0.1:${port}/mcp`, environment,
  /** Opens the link once and goes to a place. */
  async open(hash = "#/", target = page) {
    const isOpen = target.url().startsWith(`${host.origin}/`) && !target.url().includes("/open") && (await target.evaluate(() => localStorage.getItem("bowline.key") !== null));
    // The pointer stays away from lists, because they stand still while it is over them.
    await target.mouse.move(2, 2);
    if (!isOpen) {
      await target.goto(host.link);
      await target.waitForURL(`${host.origin}/`);
      await target.waitForSelector("#live[data-state=live]");
    }
    await target.evaluate((place) => { location.hash = place; }, hash);
  },
  /** Calls a tool through the gateway, as another program does. */
  call: (tool, ...args) => run(binary, ["call", `http://127.0.0.1:${port}/mcp`, tool, ...args], home),
  /** Asks the API with the key of the page. */
  api: (path, body, target = page) => target.evaluate(async ([where, what]) => {
    const reply = await fetch(where, { method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${localStorage.getItem("bowline.key")}` }, body: JSON.stringify(what) });
    return { status: reply.status, body: await reply.json().catch(() => null) };
  }, [path, body]),
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
everywhere(world);

const fine = await runAll(words, { after: (name) => world.shot(`failed-${name}`) });
await context.close();
if (process.env.DOCS) {
  for (const [from, to] of [["both-legs-light-1280", "traffic"], ["explore-result-light-1280", "explore"], ["home-first-light-1280", "home"]]) {
    copyFileSync(join(shots, `${from}.png`), join(root, `docs/images/inspector-${to}.png`));
    assert.ok(statSync(join(root, `docs/images/inspector-${to}.png`)).size < 150_000);
  }
}
process.exit(fine ? 0 : 1);

// Access: who gets a key, and what happens without one.
import { createServer, request } from "node:http";
import { spawn } from "node:child_process";
import { environment, folder, run, start, test, until, WAIT } from "./harness.mjs";

/** A request with headers that a browser would not send. */
function raw(origin, path, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(`${origin}${path}`, { method, headers }, (reply) => {
      let text = "";
      reply.on("data", (part) => { text += part; if (text.length > 100_000) reply.destroy(); });
      reply.on("close", () => resolve({ status: reply.statusCode, headers: reply.headers, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
const json = { "Content-Type": "application/json" };

export function access(world) {
  const { host, page, context, assert } = world;

  test("without_a_key_nothing_is_served", async () => {
    for (const [path, options] of [["/api/events?after=0", {}], ["/api/query", { method: "POST", headers: json, body: '{"query":"overview"}' }], ["/api/act", { method: "POST", headers: json, body: '{"action":"clear"}' }]]) {
      assert.equal((await raw(host.origin, path, options)).status, 401, path);
    }
    await page.goto(`${host.origin}/`);
    await page.getByText("This browser is not connected").waitFor();
    assert.equal(await page.locator("#tabs").isVisible(), false);
    await world.shot("no-key-light-1280");
  });

  test("a_code_works_once", async () => {
    await world.open();
    const code = new URL(host.link).hash.slice(1);
    // Long after its first use a code is refused and revokes nothing; soon after, the key would be revoked too.
    await page.waitForSelector("main .home");
    assert.match(await page.evaluate(() => localStorage.getItem("bowline.key")), /^.{20,}$/);
    assert.notEqual(await page.evaluate(() => localStorage.getItem("bowline.key")), code);
  });

  test("the_link_works_again_in_the_same_browser", async () => {
    const other = await context.newPage();
    await other.goto(host.link);
    await other.waitForURL(`${host.origin}/`);
    await other.waitForSelector("#live[data-state=live]");
    await other.close();
  });

  test("a_new_tab_has_the_key_and_a_reload_works", async () => {
    const other = await context.newPage();
    await other.goto(`${host.origin}/#/traffic`);
    await other.waitForSelector("[role=treegrid]");
    await other.reload();
    await other.waitForSelector("[role=treegrid]");
    await other.close();
  });

  test("no_url_or_history_entry_holds_a_key", async () => {
    await world.open("#/traffic");
    const [key, code] = [await page.evaluate(() => localStorage.getItem("bowline.key")), new URL(host.link).hash.slice(1)];
    const session = await context.newCDPSession(page);
    const { entries } = await session.send("Page.getNavigationHistory");
    for (const entry of entries) assert.ok(!entry.url.includes(key) && !entry.url.includes(code), entry.url);
  });

  test("a_code_used_twice_at_once_revokes_both", async () => {
    const home = folder("twice");
    const second = await start(world.binary, ["up", "--port", "0"], { home });
    const body = JSON.stringify({ code: new URL(second.link).hash.slice(1) });
    const first = await raw(second.origin, "/api/enter", { method: "POST", headers: json, body });
    assert.equal(first.status, 200, first.text);
    const { key } = JSON.parse(first.text);
    const ask = () => raw(second.origin, "/api/query", { method: "POST", headers: { ...json, Authorization: `Bearer ${key}` }, body: '{"query":"overview"}' });
    assert.equal((await ask()).status, 200);
    assert.equal((await raw(second.origin, "/api/enter", { method: "POST", headers: json, body })).status, 403);
    assert.equal((await ask()).status, 401);
    await second.stop();
  });

  test("a_foreign_host_reaches_nothing", async () => {
    for (const name of ["evil.example", "evil.example:7338", "127.0.0.1.evil.example", "0.0.0.0"]) {
      assert.ok((await raw(host.origin, "/", { headers: { Host: name } })).status >= 400, name);
      assert.ok((await raw(host.origin, "/api/query", { method: "POST", headers: { ...json, Host: name }, body: "{}" })).status >= 400, name);
    }
  });

  test("another_port_of_this_machine_reaches_nothing", async () => {
    const server = createServer((_, reply) => reply.setHeader("Content-Type", "text/html").end("<title>other</title>")).listen(0, "127.0.0.1");
    await until("listening", () => server.listening);
    const other = await context.newPage();
    await other.goto(`http://127.0.0.1:${server.address().port}/`);
    const reached = await other.evaluate(async (origin) => {
      const tries = [["/api/query", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"query":"overview"}' }], ["/api/query", { method: "POST", mode: "no-cors", body: '{"query":"overview"}' }], ["/", {}], ["/api/events?after=0", { credentials: "include" }]];
      const results = [];
      for (const [path, options] of tries) results.push(await fetch(origin + path, options).then((reply) => (reply.type === "opaque" ? "opaque" : reply.status), () => "refused"));
      return results;
    }, host.origin);
    assert.deepEqual(reached.filter((result) => result !== "refused" && result !== "opaque"), []);
    await other.close();
    server.close();
  });

  test("a_view_key_can_do_nothing", async () => {
    await world.open("#/traffic");
    await world.call("forms__echo", "text=seen");
    const call = await world.callOf("forms__echo");
    const { output } = await run(world.binary, ["open", "--print"], world.home);
    const link = /http:\S+\/open#\S+/.exec(output)?.[0];
    assert.ok(link, output);
    // Another name of this machine is another origin, with a key of its own.
    const origin = host.origin.replace("127.0.0.1", "localhost");
    const tab = await context.newPage();
    await tab.goto(link.replace("127.0.0.1", "localhost"));
    await tab.waitForURL(`${origin}/`);
    await tab.getByText("You can look.").waitFor({ timeout: WAIT });
    assert.notEqual(await tab.evaluate(() => localStorage.getItem("bowline.key")), await page.evaluate(() => localStorage.getItem("bowline.key")));
    const overview = await world.api("/api/query", { query: "overview" }, tab);
    assert.deepEqual([overview.status, overview.body.grade, overview.body.connect], [200, "view", []]);
    const actions = [
      { action: "send", server: "forms", method: "tools/call", params: { name: "echo", arguments: { text: "x" } } }, { action: "resend", seq: call }, { action: "cancel", call },
      { action: "start", server: "tickets" }, { action: "stop", server: "forms" }, { action: "restart", server: "forms" }, { action: "clear" }, { action: "answer", question: "x", answer: { kind: "allow", scope: "once", covers: "tool" } },
      { action: "complete", server: "forms", kind: "prompt", name: "review", argument: "language", value: "ru", context: {} }, { action: "subscribe", server: "forms", uri: "memo://milk", on: true }, { action: "level", level: "debug" }, { action: "roots", roots: [] },
    ];
    for (const action of actions) assert.equal((await world.api("/api/act", action, tab)).status, 403, action.action);
    await tab.goto(`${origin}/#/explore/forms/tool/echo`);
    const runButton = tab.locator("[data-run]");
    await runButton.waitFor({ timeout: WAIT });
    assert.equal(await runButton.isDisabled(), true);
    assert.match(await runButton.getAttribute("title"), /terminal/);
    await tab.screenshot({ path: new URL("../../target/inspector/shots/view-only-light-1280.png", import.meta.url).pathname });
    await tab.goto(`${origin}/#/traffic/${call}`);
    await tab.locator(".detail-body").waitFor({ timeout: WAIT });
    assert.deepEqual([await tab.getByRole("button", { name: "Resend" }).count(), await tab.getByRole("button", { name: "Clear" }).count()], [0, 0]);
    await tab.close();
  });

  test("the_gateway_token_opens_nothing", async () => {
    const other = await start(world.binary, ["up", "--port", "0"], { home: folder("token") });
    const token = (await run(world.binary, ["token", "show"], other.home)).output.trim();
    assert.match(token, /^\S{20,}$/);
    const ask = (key) => raw(other.origin, "/api/query", { method: "POST", headers: { ...json, Authorization: `Bearer ${key}` }, body: '{"query":"overview"}' });
    assert.equal((await ask(token)).status, 401);
    assert.equal((await raw(other.origin, "/api/enter", { method: "POST", headers: json, body: JSON.stringify({ code: token }) })).status, 403);
    const entered = await raw(other.origin, "/api/enter", { method: "POST", headers: json, body: JSON.stringify({ code: new URL(other.link).hash.slice(1) }) });
    const { key } = JSON.parse(entered.text);
    const overview = JSON.parse((await ask(key)).text);
    // The token is the one that clients use, so the test compares the right thing, and the key is none.
    const endpoint = /http:\/\/[^\s"']+\/mcp/.exec(overview.connect.map((hint) => hint.text).join(" "))[0];
    const gateway = (bearer) => raw(new URL(endpoint).origin, "/mcp", { method: "POST", headers: { ...json, Accept: "application/json, text/event-stream", Authorization: `Bearer ${bearer}` }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } } }) });
    assert.equal((await gateway(token)).status, 200);
    assert.equal((await gateway(key)).status, 401);
    await other.stop();
  });

  test("configured_origins_do_not_count_here", async () => {
    const other = await context.newPage();
    await other.goto(`${world.site.origin}/`);
    const reached = await other.evaluate(async ([inspector, gateway]) => {
      const post = (url, body) => fetch(url, { method: "POST", headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream" }, body: JSON.stringify(body) }).then((reply) => reply.status, () => "refused");
      return {
        gateway: await post(gateway, { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "allowed page", version: "1" } } }),
        query: await post(`${inspector}/api/query`, { query: "overview" }), enter: await post(`${inspector}/api/enter`, { code: "x" }),
        shell: await fetch(`${inspector}/`).then((reply) => reply.status, () => "refused"),
      };
    }, [host.origin, world.gateway]);
    assert.deepEqual(reached, { gateway: 200, query: "refused", enter: "refused", shell: "refused" });
    assert.equal((await raw(host.origin, "/api/query", { method: "POST", headers: { ...json, Origin: world.site.origin }, body: '{"query":"overview"}' })).status, 403);
    await other.close();
  });

  test("a_foreign_link_opens_only_open", async () => {
    const tab = await context.newPage();
    for (const [path, status] of [["/", 403], ["/#/explore/forms/tool/echo", 403], ["/open#/explore/forms/tool/wipe", 200]]) {
      await tab.goto(`${world.site.origin}/link?to=${encodeURIComponent(host.origin + path)}`);
      const [reply] = await Promise.all([tab.waitForResponse((each) => each.url().startsWith(host.origin) && each.request().isNavigationRequest()), tab.locator("#link").click()]);
      assert.equal(reply.status(), status, path);
      if (status === 403) assert.match(await reply.text(), /paste this address into the address bar/);
    }
    // It has no data of its own. A browser with a key goes on to Home, whatever place the link names.
    await tab.waitForURL(`${host.origin}/`);
    await tab.waitForSelector("main .home");
    assert.equal(new URL(tab.url()).hash, "");
    assert.ok(!/forms|everything|echo/.test((await raw(host.origin, "/open")).text));
    await tab.close();
  });

  test("it_cannot_be_framed_and_sets_no_cookie", async () => {
    for (const path of ["/", "/open"]) {
      const { headers } = await raw(host.origin, path);
      assert.match(headers["content-security-policy"], /frame-ancestors 'none'/);
      assert.match(headers["content-security-policy"], /require-trusted-types-for 'script'/);
      assert.equal(headers["x-frame-options"], "DENY");
      assert.equal(headers["set-cookie"], undefined);
    }
    assert.deepEqual((await context.cookies()).map((cookie) => cookie.name), []);
  });

  test("a_url_runs_nothing", async () => {
    await world.open("#/");
    const calls = async () => (await world.api("/api/query", { query: "calls", after: 0 })).body.heads.filter((head) => head.peer === "page").length;
    const before = await calls();
    for (const hash of ["#/explore/forms/tool/echo?text=hi&run=1", "#/explore/forms/tool/wipe?run", "#/traffic/1?resend=1", "#/inbox/x?allow=1", "#/server/forms?restart=1"]) {
      await page.evaluate((place) => { location.hash = place; }, hash);
      await page.waitForTimeout(100);
    }
    assert.equal(await calls(), before);
  });

  test("wrong_keys_lock_nobody_out", async () => {
    for (let index = 0; index < 50; index += 1) assert.equal((await raw(host.origin, "/api/query", { method: "POST", headers: { ...json, Authorization: `Bearer wrong${index}` }, body: '{"query":"overview"}' })).status, 401);
    await world.open();
    assert.equal((await world.api("/api/query", { query: "overview" })).status, 200);
  });

  test("nothing_is_printed_without_a_terminal", async () => {
    const home = folder("quiet");
    const child = spawn(world.binary, ["up", "--port", "0"], { cwd: home, env: environment(home), stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (part) => { output += part; });
    child.stderr.on("data", (part) => { output += part; });
    await until("the program prints its address", () => /http:\/\/127\.0\.0\.1/.test(output), 30_000);
    child.kill("SIGTERM");
    await new Promise((resolve) => child.once("exit", resolve));
    assert.ok(!/open#/.test(output), output);
  });
}

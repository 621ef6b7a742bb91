// Tasks, the same call on every revision, and servers that want a login.
import { createServer } from "node:http";
import { folder, start, test, until, WAIT } from "./harness.mjs";

export function tasks(world) {
  const { page, assert, context } = world;
  const shots = (name) => new URL(`../../target/inspector/shots/${name}.png`, import.meta.url).pathname;
  const waiting = async () => (await world.api("/api/query", { query: "inbox" })).body.waiting;
  const heads = async () => (await world.api("/api/query", { query: "calls", after: 0 })).body.heads;
  const latest = (name) => until(`a call of ${name}`, async () => (await heads()).filter((head) => head.kind === "request" && head.leg === "client" && head.name === name).at(-1)?.seq);

  test("a_task_is_followed_to_its_end", async () => {
    await world.open("#/explore/modern/tool/slow_compute");
    await page.locator(".call-form input").first().fill("2");
    await page.locator("[data-run]").click();
    await page.locator(".running-task", { hasText: "Working" }).waitFor({ timeout: WAIT });
    const call = await latest("modern__slow_compute");
    await page.evaluate((to) => { location.hash = to; }, `#/traffic/${call}`);
    await page.getByRole("tab", { name: "Task" }).click();
    await page.locator(".task-steps li", { hasText: "Working" }).first().waitFor({ timeout: WAIT });
    await page.getByRole("button", { name: "Cancel the task" }).waitFor();
    await page.locator(".task-steps li", { hasText: "Completed" }).waitFor({ timeout: WAIT });
    await world.shot("task-light-1280");
    // Everything that was said about the task is in the tree of its call.
    const { body } = await world.api("/api/query", { query: "call", call });
    const methods = [];
    const visit = (node) => {
      methods.push(node.head.method);
      node.children.forEach(visit);
    };
    visit(body.root);
    assert.ok(methods.includes("tools/call") && methods.includes("tasks/get"), methods.join(" "));
    assert.ok((await heads()).filter((head) => head.method === "tasks/get" && head.kind === "request").every((head) => head.parent !== undefined));
    await page.locator(`.grid-row[aria-selected=true]`, { hasText: "slow_compute" }).waitFor();
    assert.equal(await page.locator("button", { hasText: "Cancel the task" }).count(), 0);
    await page.evaluate(() => { location.hash = "#/explore/modern/tool/slow_compute"; });
    await page.locator(".result").getByText("took 2 s").first().waitFor({ timeout: WAIT });
  });

  test("a_task_asks_in_the_inbox_and_is_cancelled", async () => {
    await world.open("#/explore/modern/tool/confirm_delete");
    await page.locator(".call-form input").first().fill("notes.txt");
    await page.locator("[data-run]").click();
    const question = await until("a question", async () => (await waiting()).find((each) => each.asks.kind === "form"));
    await page.locator(".running-task", { hasText: "Needs input" }).waitFor({ timeout: WAIT });
    const call = await latest("modern__confirm_delete");
    assert.equal(question.call, call);
    await page.evaluate((to) => { location.hash = to; }, `#/traffic/${call}`);
    await page.getByRole("tab", { name: "Task" }).click();
    await page.locator(".task-tab").getByRole("link", { name: /Inbox/ }).click();
    await page.getByText("Delete notes.txt?").first().waitFor({ timeout: WAIT });
    const send = page.locator(".answer").getByRole("button", { name: "Send" });
    await page.locator(".question").getByRole("switch").or(page.locator(".question input[type=checkbox]")).first().check();
    await until("the button is ready", async () => (await send.getAttribute("aria-disabled")) === "false");
    await send.click();
    await page.evaluate(() => { location.hash = "#/explore/modern/tool/confirm_delete"; });
    await page.locator(".result").getByText("deleted notes.txt").first().waitFor({ timeout: WAIT });
    // A task that would take an hour ends at once.
    await page.evaluate(() => { location.hash = "#/explore/modern/tool/slow_compute"; });
    await page.locator(".call-form input").first().fill("3600");
    await page.locator("[data-run]").click();
    await page.locator(".running-task", { hasText: "Working" }).waitFor({ timeout: WAIT });
    const long = await latest("modern__slow_compute");
    await page.evaluate((to) => { location.hash = to; }, `#/traffic/${long}`);
    await page.getByRole("tab", { name: "Task" }).click();
    await page.getByRole("button", { name: "Cancel the task" }).click();
    await page.locator(".grid-row[aria-selected=true]", { hasText: "Cancelled" }).waitFor({ timeout: WAIT });
    await until("the server is told", async () => (await heads()).some((head) => head.method === "tasks/cancel" && head.leg === "server" && head.parent === long));
  });

  test("one_call_on_every_revision", async () => {
    await world.open("#/explore/modern/tool/greet");
    await page.locator(".call-form input").first().fill("Ada");
    const before = await heads();
    await page.getByRole("button", { name: "Every revision" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("5 times").first().waitFor();
    // Nothing runs before the button is pressed.
    assert.equal((await heads()).length, before.length);
    await dialog.getByRole("button", { name: "Run 5 times" }).click();
    await until("five results", async () => (await dialog.locator("tbody tr", { hasText: "Done" }).count()) === 5, 50_000);
    const all = (await heads()).slice(before.length);
    const sent = all.filter((head) => head.leg === "server" && head.kind === "request" && head.method === "tools/call" && head.name === "greet").map((head) => head.revision);
    assert.deepEqual(sent.sort(), ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);
    // Side by side, what differs is marked.
    await dialog.getByRole("tab", { name: "Request to the server" }).click();
    await dialog.getByLabel("Right revision").selectOption("2024-11-05");
    await until("the requests", async () => /protocolVersion/.test(await dialog.locator(".leg").first().innerText()));
    await until("both", async () => (await dialog.locator(".leg").count()) === 2);
    assert.ok((await dialog.locator(".leg").first().locator(".json-row.changed").count()) > 0);
    assert.ok(!/protocolVersion/.test(await dialog.locator(".leg").nth(1).innerText()));
    await page.waitForTimeout(300);
    await world.shot("revisions-light-1280");
    await page.keyboard.press("Escape");
    // A server that speaks one revision says so for the others, and its own connection is not disturbed.
    const starts = async () => (await world.api("/api/query", { query: "overview" })).body.servers.find((each) => each.name === "forms").starts;
    const started = await starts();
    await world.call("forms__echo", "text=again");
    await page.evaluate((to) => { location.hash = to; }, `#/traffic/${await world.callOf("forms__echo")}`);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByRole("menuitem", { name: /On every revision/ }).click();
    await dialog.getByRole("button", { name: "Run 5 times" }).click();
    await until("one result", async () => (await dialog.locator("tbody tr", { hasText: "Done" }).count()) === 1, 50_000);
    await until("four without", async () => (await dialog.locator("tbody tr", { hasText: "Not spoken" }).count()) === 4, 50_000);
    await page.keyboard.press("Escape");
    assert.equal(await starts(), started);
  });

  test("a_server_that_needs_a_login_says_so", async () => {
    // A protected server: it says where its metadata is, and accepts no request without a token.
    let origin = "";
    const server = createServer((request, reply) => {
      const json = (value) => reply.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
      if (request.url.startsWith("/.well-known/oauth-protected-resource")) json({ resource: `${origin}/mcp`, authorization_servers: [origin] });
      else if (request.url.startsWith("/.well-known/")) json({ issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token`, registration_endpoint: `${origin}/register`, response_types_supported: ["code"], code_challenge_methods_supported: ["S256"] });
      else if (request.url === "/register") {
        let body = "";
        request.on("data", (part) => { body += part; });
        request.on("end", () => reply.writeHead(201, { "Content-Type": "application/json" }).end(JSON.stringify({ ...JSON.parse(body), client_id: "bowline-test" })));
      } else reply.writeHead(401, { "WWW-Authenticate": `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"` }).end();
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${server.address().port}`;
    const home = folder("login");
    const other = await start(world.binary, ["-c", `${home}/bowline.toml`, "up", "--port", "0"], { home, config: `[servers.tracker]\nurl = "${origin}/mcp"\n` });
    const tab = await context.newPage();
    await tab.goto(other.link);
    await tab.waitForURL(`${other.origin}/`);
    world.api("/api/act", { action: "start", server: "tracker" }, tab);
    // The host asks for the login, in the terminal and here. Nobody wants to log in now.
    const question = await until("the question", async () => (await world.api("/api/query", { query: "inbox" }, tab)).body.waiting[0]);
    await world.api("/api/act", { action: "answer", question: question.id, answer: { kind: "decline" } }, tab);
    const row = tab.locator("tbody", { hasText: "tracker" });
    await row.getByText("Needs login").waitFor({ timeout: WAIT });
    await row.getByText("bowline login tracker", { exact: true }).waitFor();
    await tab.screenshot({ path: shots("needs-login-light-1280") });
    await tab.evaluate(() => { location.hash = "#/server/tracker"; });
    await tab.locator(".callout.person", { hasText: "bowline login tracker" }).waitFor({ timeout: WAIT });
    await tab.close();
    await other.stop();
    server.closeAllConnections();
    server.close();
  });
}

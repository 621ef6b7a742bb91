// Home and Traffic.
import { folder, start, test, until, WAIT } from "./harness.mjs";

export function traffic(world) {
  const { page, context, assert } = world;
  const rows = () => page.locator(".grid-body .grid-row:not([hidden])");
  const filter = (text) => page.locator("[data-find]").fill(text);
  const detailTab = (name) => page.locator(".detail-tabs").getByRole("tab", { name }).click();
  /** Waits until the stream has the heads of a call and returns its number. */
  const callOf = (name, peer = "") => until(`a call of ${name}`, async () => {
    const { body } = await world.api("/api/query", { query: "calls", after: 0 });
    return body.heads.filter((head) => head.kind === "request" && head.leg === "client" && head.name?.endsWith(name) && head.peer.includes(peer)).at(-1)?.seq;
  });

  test("a_newcomer_runs_a_call_in_two_clicks", async () => {
    const demo = await start(world.binary, ["up", "--port", "0"], { home: folder("demo") });
    const tab = await context.newPage();
    await tab.goto(demo.link);
    await tab.waitForURL(`${demo.origin}/`);
    const runButton = tab.locator("[data-run]");
    await runButton.waitFor({ timeout: WAIT });
    await until("the button is ready", () => runButton.isEnabled());
    await runButton.click();
    await tab.locator(".verdict.ok").waitFor({ timeout: WAIT });
    await tab.screenshot({ path: new URL("../../target/inspector/shots/home-first-light-1280.png", import.meta.url).pathname });
    await tab.close();
    await demo.stop();
  });

  test("a_failed_server_shows_why", async () => {
    await world.open("#/");
    await world.api("/api/act", { action: "start", server: "tickets" });
    const row = page.locator("tbody", { hasText: "tickets" });
    await row.getByText("TICKETS_TOKEN is not set").first().waitFor({ timeout: WAIT });
    await row.locator(".status.error").first().waitFor();
  });

  test("a_connected_client_is_noticed", async () => {
    await world.open("#/");
    const { output, code } = await world.call("forms__echo", "text=hello");
    assert.equal(code, 0, output);
    await page.locator(".call-list").getByText("forms__echo").first().waitFor({ timeout: WAIT });
  });

  test("a_call_appears_and_request_and_response_are_one_row", async () => {
    await world.open("#/traffic");
    await world.call("forms__echo", "text=unique-1");
    const call = await callOf("forms__echo");
    await filter("name:forms__echo kind:call");
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${call}?f=name:forms__echo`);
    const row = page.locator(".grid-row[aria-selected=true]");
    await row.waitFor();
    await row.locator(".status.ok").waitFor();
    assert.equal(await page.locator(".grid-row[aria-selected=true]").count(), 1);
    const { body } = await world.api("/api/query", { query: "call", call });
    assert.ok(body.root.end.status === "done" && body.root.children.some((child) => child.head.leg === "server"));
  });

  test("both_legs_show_what_the_bridge_changed", async () => {
    const call = await callOf("forms__echo");
    await world.open(`#/traffic/${call}`);
    await detailTab("Both legs");
    await page.locator(".leg").nth(3).waitFor();
    await page.locator(".legs .json-row.changed").first().waitFor();
    await world.shot("both-legs-light-1280");
  });

  test("an_elicitation_nests", async () => {
    await world.open("#/explore/forms/tool/ask");
    await page.locator("[data-run]").click();
    await page.getByText("Waiting for you in the Inbox").waitFor({ timeout: WAIT });
    await world.shot("explore-waiting-light-1280");
    const question = await until("the form", async () => (await world.api("/api/query", { query: "inbox" })).body.waiting.find((each) => each.asks.kind === "form")?.id);
    await page.evaluate((id) => { location.hash = `#/inbox/${id}`; }, question);
    await page.getByText("What is your name?").waitFor();
    await page.getByLabel("Name").fill("Ada");
    const send = page.locator(".answer").getByRole("button", { name: "Send" });
    await until("the button is ready", async () => (await send.getAttribute("aria-disabled")) === "false");
    await send.click();
    const call = await callOf("ask", "page");
    await page.evaluate((place) => { location.hash = place; }, `#/explore/forms/tool/ask`);
    await page.getByText("hello Ada").waitFor({ timeout: WAIT });
    const { body } = await world.api("/api/query", { query: "call", call });
    const methods = (each) => [each.head.method, ...each.children.flatMap(methods)];
    assert.ok(methods(body.root).includes("elicitation/create"), JSON.stringify(methods(body.root)));
  });

  test("the_filter_does_what_it_says_and_statistics_describe_it", async () => {
    await world.call("forms__fail");
    await world.call("forms__reject");
    await world.open("#/traffic");
    await filter("status:failed name:forms__reject");
    await until("only the failed call", async () => (await rows().count()) > 0 && !(await page.locator(".grid-body").innerText()).includes("forms__echo"));
    await until("statistics", async () => (await page.locator(".summary-bar").innerText()).includes("1 failed"));
    await filter("server:nowhere");
    await page.getByText("No call matches").waitFor();
    await world.shot("traffic-no-match-light-1280");
    await page.getByRole("button", { name: "Remove it" }).click();
    await until("rows again", async () => (await rows().count()) > 3);
    await page.locator("[data-find]").fill("took:>fast");
    await page.getByText("write a duration").waitFor();
    await filter("");
  });

  test("search_finds_text_in_bodies", async () => {
    await world.call("forms__echo", "text=needle-4711");
    await world.open("#/traffic");
    await filter("body:needle-4711");
    await until("the call with the text", async () => (await rows().count()) > 0 && (await page.locator(".summary-bar").innerText()).includes(" of ") && (await page.locator(".grid-body").innerText()).includes("forms__echo"));
    await until("few rows", async () => (await rows().count()) < 8);
    await filter("");
  });

  test("raw_text_is_exact", async () => {
    await world.call("--unchecked", "forms__exact").catch(() => {});
    await world.open("#/traffic");
    const leg = await until("the message", async () => {
      const { body } = await world.api("/api/query", { query: "calls", after: 0 });
      return body.heads.filter((head) => head.kind === "response" && head.leg === "server" && head.name === "exact").at(-1)?.call;
    });
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${leg}`);
    await detailTab("Response");
    await page.locator(".json").getByText("12345678901234567890.10").first().waitFor({ timeout: WAIT });
    const text = await page.locator(".detail .json").innerText();
    assert.ok(text.includes("1e400") && text.includes("\\u0041"), text);
  });

  test("output_of_a_server_is_between_its_calls", async () => {
    await world.call("forms__noisy");
    await world.open("#/traffic");
    await filter("kind:output noise");
    await page.locator(".grid-body").getByText("noise from the server").first().waitFor({ timeout: WAIT });
    await filter("");
  });

  test("100k_rows_scroll", async () => {
    await world.open("#/traffic");
    await page.waitForSelector("[role=treegrid]");
    const figures = await page.evaluate(async () => {
      const base = document.querySelector("script[type=module]").src.replace(/app\.js$/, "");
      const store = await import(`${base}traffic/store.js`);
      const heads = [];
      const from = Date.now() - 600_000;
      let seq = 10_000_000;
      for (let index = 0; index < 50_000; index += 1) {
        seq += 1;
        const call = seq;
        heads.push({ seq, at: from + index * 10, connection: 1, peer: "load", leg: "client", direction: "in", kind: "request", method: "tools/call", name: `tool_${index % 50}`, id: "1", call, size: 100 });
        seq += 1;
        heads.push({ seq, at: from + index * 10 + 3, connection: 1, peer: "load", leg: "client", direction: "out", kind: "response", method: "tools/call", id: "1", call, size: 100, status: index % 97 ? "done" : "tool_error", took: 3 });
      }
      for (let index = 0; index < 50_000; index += 1) {
        seq += 1;
        heads.push({ seq, at: from + index * 10 + 5, connection: 1, peer: "load", leg: "host", direction: "in", kind: "output", name: `line ${index}`, size: 20 });
      }
      const begun = performance.now();
      for (let at = 0; at < heads.length; at += 500) store.add(heads.slice(at, at + 500));
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
      const ingest = performance.now() - begun;
      const body = document.querySelector(".grid-body");
      const frames = [];
      for (let step = 0; step < 40; step += 1) {
        body.scrollTop = (body.scrollHeight / 40) * step;
        const frame = performance.now();
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
        frames.push(performance.now() - frame);
      }
      frames.sort((a, b) => a - b);
      return { ingest, p95: frames[37], nodes: document.querySelectorAll(".grid-row").length, rows: Number(document.querySelector("[role=treegrid]").getAttribute("aria-rowcount")) };
    });
    console.log(`  150,000 heads: ${Math.round(figures.ingest)} ms to drawn, scroll frame p95 ${Math.round(figures.p95)} ms, ${figures.nodes} row elements of ${figures.rows} rows`);
    assert.ok(figures.rows > 100_000 && figures.nodes < 120, JSON.stringify(figures));
    if (process.env.BUDGETS === "strict") assert.ok(figures.ingest < 750 && figures.p95 < 34, JSON.stringify(figures));
    await page.reload();
    await page.waitForSelector("#live[data-state=live]");
  });

  test("new_rows_do_not_move_what_is_read", async () => {
    const call = await callOf("forms__echo");
    await world.open(`#/traffic/${call}`);
    const row = page.locator(".grid-row[aria-selected=true]");
    await row.waitFor();
    await page.waitForTimeout(300);
    const before = await row.boundingBox();
    await world.call("forms__echo", "text=later");
    await page.getByRole("button", { name: /new$/ }).waitFor({ timeout: WAIT });
    assert.equal((await row.boundingBox()).y, before.y);
    await world.shot("traffic-new-light-1280");
    await page.getByRole("button", { name: /new$/ }).click();
    await page.keyboard.press("Escape");
  });

  test("a_gap_is_shown", async () => {
    await world.open("#/traffic");
    await page.reload();
    await page.locator(".grid-body .grid-row:not([hidden])").first().waitFor();
    await page.evaluate(async () => {
      const base = document.querySelector("script[type=module]").src.replace(/app\.js$/, "");
      (await import(`${base}traffic/store.js`)).gap([20_000_000, 20_001_203]);
    });
    await page.getByText("1,204 messages were dropped here").waitFor();
    await page.reload();
    await page.waitForSelector("#live[data-state=live]");
  });

  test("a_restart_is_noticed", async () => {
    const second = await start(world.binary, ["up", "--port", "0"], { home: folder("restart") });
    const tab = await context.newPage();
    await tab.goto(second.link);
    await tab.waitForSelector("#live[data-state=live]");
    await second.stop();
    await tab.getByText("Reconnecting…").or(tab.getByText("Disconnected")).first().waitFor({ timeout: WAIT });
    await tab.getByText("bowline was restarted or has ended").waitFor({ timeout: 30_000 });
    await tab.close();
  });
}

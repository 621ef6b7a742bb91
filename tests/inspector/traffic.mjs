// Home and Traffic.
import { dirname } from "node:path";
import { folder, run, start, test, until, WAIT } from "./harness.mjs";

export function traffic(world) {
  const { page, context, assert } = world;
  const rows = () => page.locator(".grid-body .grid-row:not([hidden])");
  const filter = (text) => page.locator("[data-find]").fill(text);
  const detailTab = (name) => page.locator(".detail-tabs").getByRole("tab", { name }).click();
  const callOf = world.callOf;
  const methods = (each) => [each.head.method, ...each.children.flatMap(methods)];
  /** Answers the form that waits, in the page. */
  const fillForm = async (label, value) => {
    const question = await until("the form", async () => (await world.api("/api/query", { query: "inbox" })).body.waiting.find((each) => each.asks.kind === "form")?.id);
    await page.evaluate((id) => { location.hash = `#/inbox/${id}`; }, question);
    await page.locator(".question").getByLabel(label).fill(value);
    const send = page.locator(".answer").getByRole("button", { name: "Send" });
    await until("the button is ready", async () => (await send.getAttribute("aria-disabled")) === "false");
    await send.click();
    await until("the answer is sent", async () => (await world.api("/api/query", { query: "inbox" })).body.waiting.every((each) => each.id !== question));
  };

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

  test("an_elicitation_nests_in_both_eras", async () => {
    for (const [server, tool, label, greeting] of [["forms", "ask", "Name", "hello Ada"], ["modern", "test_input_required_result_elicitation", /name/i, /Ada/]]) {
      await world.open(`#/explore/${server}/tool/${tool}`);
      await page.locator(".item-name", { hasText: tool }).waitFor({ timeout: WAIT });
      await page.locator("[data-run]").click();
      await page.getByText("Waiting for you in the Inbox").waitFor({ timeout: WAIT });
      if (server === "forms") await world.shot("explore-waiting-light-1280");
      await fillForm(label, "Ada");
      const call = await callOf(tool, "page");
      await page.evaluate((place) => { location.hash = place; }, `#/explore/${server}/tool/${tool}`);
      await page.locator(".result").getByText(greeting).first().waitFor({ timeout: WAIT });
      const { body } = await world.api("/api/query", { query: "call", call });
      // The legacy server sends a request; the modern one asks in its result, and the host asks the person.
      assert.ok(methods(body.root).includes("elicitation/create") || JSON.stringify(body.root).includes('"kind":"question"'), JSON.stringify(methods(body.root)));
      await page.evaluate((place) => { location.hash = place; }, `#/traffic/${call}?f=name:${tool}`);
      // The question is a row below the call, and the person's time is part of its bar.
      const nested = page.locator(".grid-row.kind-question:not([hidden]), .grid-row:not([hidden])", { hasText: /elicitation\/create|question/ }).first();
      await nested.waitFor({ timeout: WAIT });
      assert.ok(Number(await nested.getAttribute("aria-level")) > 1);
      await page.locator(".grid-row:not([hidden]) .who-person").first().waitFor({ timeout: WAIT });
    }
  });

  test("rounds_of_2026_are_one_call", async () => {
    await world.open("#/explore/modern/tool/test_input_required_result_multi_round");
    await page.locator(".item-name", { hasText: "multi_round" }).waitFor({ timeout: WAIT });
    await page.locator("[data-run]").click();
    const forms = async () => (await world.api("/api/query", { query: "inbox" })).body.waiting.filter((each) => each.asks.kind === "form");
    for (const round of [1, 2]) {
      const [question] = await until(`question ${round}`, async () => { const list = await forms(); return list.length === 1 && list; });
      await page.evaluate((id) => { location.hash = `#/inbox/${id}`; }, question.id);
      await page.locator(".question input").first().fill(`answer ${round}`);
      const send = page.locator(".answer").getByRole("button", { name: "Send" });
      await until("the button is ready", async () => (await send.getAttribute("aria-disabled")) === "false");
      await send.click();
      await until("the answer is sent", async () => (await forms()).every((each) => each.id !== question.id));
    }
    const call = await callOf("multi_round", "page");
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${call}?f=name:multi_round`);
    const root = page.locator(".grid-row[aria-selected=true]");
    await root.locator(".status.ok").waitFor({ timeout: WAIT });
    assert.equal(await root.getAttribute("aria-level"), "1");
    const rounds = await until("three rounds", async () => {
      const { body } = await world.api("/api/query", { query: "call", call });
      const all = (each) => [each, ...each.children.flatMap(all)];
      const sent = all(body.root).filter((each) => each.head.leg === "server" && each.head.direction === "out" && each.head.method === "tools/call");
      return sent.length === 3 && sent;
    });
    assert.deepEqual(rounds.map((each) => each.end?.status), ["input_required", "input_required", "done"]);
    // One tree: no other call of this name has no parent.
    const levels = await page.locator(".grid-row:not([hidden])", { hasText: "multi_round" }).evaluateAll((rows) => rows.map((row) => row.getAttribute("aria-level")));
    assert.equal(levels.filter((level) => level === "1").length, 1, levels.join(" "));
    assert.equal(levels.length, 4, levels.join(" "));
    await world.shot("traffic-rounds-light-1280");
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
    await rows().getByText("noise from the server").first().waitFor({ timeout: WAIT });
    // Between: the line came after the request of the call that wrote it and before its end.
    await filter("server:forms -kind:gap noisy noise");
    const { body } = await world.api("/api/query", { query: "calls", after: 0 });
    const line = body.heads.filter((head) => head.kind === "output" && head.name === "noise from the server").at(-1);
    const call = body.heads.filter((head) => head.kind === "request" && head.leg === "server" && head.name === "noisy").at(-1);
    assert.ok(call.at <= line.at, `${call.at} ${line.at}`);
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${line.seq}?f=`);
    await page.getByText("Calls that ran then").waitFor({ timeout: WAIT });
    await page.locator(".call-links a", { hasText: "noisy" }).first().waitFor();
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

  test("resend_makes_a_new_call", async () => {
    await world.open("#/traffic");
    await world.call("forms__echo", "text=sent-again");
    const first = await callOf("forms__echo");
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${first}`);
    await page.locator(".detail").getByRole("button", { name: "Resend" }).click();
    await until("the place of the new call", async () => Number(new URL(page.url()).hash.split("/")[2]?.split("?")[0]) > first);
    const second = Number(new URL(page.url()).hash.split("/")[2].split("?")[0]);
    await page.locator(".grid-row[aria-selected=true] .status.ok").waitFor({ timeout: WAIT });
    await detailTab("Request");
    await page.locator(".detail .json").getByText("sent-again").first().waitFor({ timeout: WAIT });
    const { body } = await world.api("/api/query", { query: "call", call: second });
    assert.deepEqual([body.root.head.peer, body.root.end.status], ["page", "done"]);
    assert.equal((await world.api("/api/query", { query: "call", call: first })).body.root.head.seq, first);
  });

  test("resend_with_other_arguments", async () => {
    await world.open("#/traffic");
    await world.call("forms__echo", "text=before");
    const first = await callOf("forms__echo");
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${first}`);
    await page.locator(".detail").getByRole("button", { name: "Edit" }).click();
    const area = page.getByRole("dialog").getByLabel("Arguments as JSON");
    await until("the arguments", async () => (await area.inputValue()).includes("before"));
    await area.fill('{"text":"after"');
    await page.getByRole("dialog").getByText("This is not JSON yet").waitFor();
    assert.equal(await page.getByRole("dialog").getByRole("button", { name: "Send" }).isDisabled(), true);
    await area.fill('{"text":"after"}');
    await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
    await until("the place of the new call", async () => Number(new URL(page.url()).hash.split("/")[2]?.split("?")[0]) > first);
    await page.locator(".grid-row[aria-selected=true] .status.ok").waitFor({ timeout: WAIT });
    await detailTab("Response");
    await page.locator(".detail .json").getByText("after").first().waitFor({ timeout: WAIT });
  });

  test("resend_reaches_no_other_server", async () => {
    await world.open("#/traffic");
    await world.call("forms__secret", "password=correct-horse-battery");
    const first = await callOf("forms__secret");
    // Whatever else the action says, it reaches the server and the tool of the message.
    const { body: sent, status } = await world.api("/api/act", { action: "resend", seq: first, server: "modern", name: "modern__echo", params: { name: "modern__echo" }, arguments: { name: "modern__echo" } });
    assert.equal(status, 200, JSON.stringify(sent));
    {
      const root = await until("the end", async () => { const { body } = await world.api("/api/query", { query: "call", call: sent.call }); return body.root.end && body.root; });
      assert.deepEqual([root.head.name, root.children.filter((child) => child.head.leg === "server").map((child) => [child.head.peer, child.head.name])], ["forms__secret", [["forms", "secret"]]]);
    }
    // Only requests to a server can be sent again.
    const { body } = await world.api("/api/query", { query: "calls", after: 0 });
    const others = [["a response", (head) => head.kind === "response"], ["a handshake", (head) => head.method === "initialize"], ["output", (head) => head.kind === "output"]].map(([what, is]) => body.heads.find(is) ?? assert.fail(what));
    for (const head of others) assert.ok((await world.api("/api/act", { action: "resend", seq: head.seq })).status >= 400, JSON.stringify(head));
  });

  test("copied_curl_and_command_run", async () => {
    await world.open("#/traffic");
    // A backslash needs quotes that not every shell has; for those it stays inert.
    for (const [words, shells] of [["it is $(id) `x` && ü", ["bash", "dash"]], ["it's \\ and 'more' $HOME", ["bash"]]]) {
      await world.call("forms__echo", `text=${words}`);
      await copiesRun(words, shells);
    }
  });
  const copiesRun = async (words, shells) => {
    const call = await until("the call with these words", async () => {
      const seq = await callOf("forms__echo");
      const { body } = await world.api("/api/query", { query: "message", seq, all: true });
      return JSON.parse(body.text).params.arguments.text === words && seq;
    });
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${call}`);
    await page.locator(".detail h2", { hasText: "forms__echo" }).waitFor({ timeout: WAIT });
    for (const label of ["bowline command", "curl"]) {
      await page.evaluate(() => navigator.clipboard.writeText(""));
      await page.getByRole("button", { name: "Copy as" }).click();
      await page.getByRole("menuitem", { name: label }).click();
      const text = await until("the copy", () => page.evaluate(() => navigator.clipboard.readText()));
      for (const shell of shells) {
        const { output, code } = await run(shell, ["-c", text], world.home, { PATH: `${dirname(world.binary)}:${process.env.PATH}`, BOWLINE_TOKEN: "none" });
        assert.equal(code, 0, `${shell}: ${text}\n${output}`);
        assert.ok(output.includes(label === "curl" ? JSON.stringify(words) : words), `${shell}: ${text}\n${output}`);
      }
    }
  };

  test("a_subscription_shows_its_change", async () => {
    await world.open("#/explore/forms/resource/memo%3A%2F%2Fmilk");
    await page.getByRole("button", { name: "Subscribe" }).click();
    await page.getByRole("button", { name: "Subscribed" }).waitFor({ timeout: WAIT });
    await until("the server is subscribed", async () => (await world.api("/api/query", { query: "calls", after: 0 })).body.heads.some((head) => head.method === "resources/subscribe"));
    assert.equal(await page.getByText("Changed at").count(), 0);
    await world.call("forms__touch");
    await page.getByText(/Changed at \d\d:\d\d:\d\d/).waitFor({ timeout: WAIT });
    await world.shot("explore-subscribed-light-1280");
    await page.getByRole("button", { name: "Read again" }).click();
    await page.getByText("memo of memo://milk").waitFor({ timeout: WAIT });
    await until("it is read", async () => (await page.getByText("Changed at").count()) === 0);
    await page.getByRole("button", { name: "Subscribed" }).click();
    await page.getByRole("button", { name: "Subscribe", exact: true }).waitFor();
  });

  test("inspect_opens_explore", async () => {
    const other = await start(world.binary, ["inspect", "--", process.execPath, world.script, "forms"], { home: folder("inspect") });
    const tab = await context.newPage();
    await tab.goto(other.link);
    await tab.waitForURL(/#\/explore$/);
    await tab.locator("a.entry", { hasText: "flood" }).waitFor({ timeout: WAIT });
    await tab.close();
    await other.stop();
  });

  const store = (tab, what) => tab.evaluate(async (name) => {
    const base = document.querySelector("script[type=module]").src.replace(/app\.js$/, "");
    return (await import(`${base}traffic/store.js`))[name]();
  }, what);

  test("100k_rows_scroll_and_a_gap_is_shown", async () => {
    const home = folder("flood");
    const other = await start(world.binary, ["-c", `${home}/bowline.toml`, "up", "--port", "0", "--no-token"], { home, config: world.smallConfig });
    const tab = await context.newPage();
    await tab.goto(other.link);
    await tab.waitForURL(`${other.origin}/`);
    await tab.evaluate(() => { location.hash = "#/traffic"; });
    await tab.waitForSelector("[role=treegrid]");
    const send = (name, args) => world.api("/api/act", { action: "send", server: "forms", method: "tools/call", params: { name, arguments: args } }, tab);
    const count = () => tab.locator("[role=treegrid]").getAttribute("aria-rowcount").then(Number);
    // The host drops lines of a server that writes faster than it reads, so several calls are needed.
    let known = 0;
    for (let call = 0; call < 12 && known <= 100_500; call += 1) {
      assert.equal((await send("flood", { lines: 20_000 })).status, 200);
      known = await until("the page has more lines", async () => {
        const now = await store(tab, "size");
        return now > known + 5_000 && now;
      });
    }
    await until("the rows are in the list", async () => (await count()) > 100_000);
    // What the page shows is what the host sent: the list follows, so the newest line is on screen.
    const last = tab.locator(".grid-row:not([hidden])", { hasText: "noise from the server" });
    await until("the newest line", async () => {
      await send("noisy", {});
      return last.first().waitFor({ timeout: 2000 }).then(() => true, () => false);
    });
    {
      const figures = await tab.evaluate(async () => {
        const body = document.querySelector(".grid-body");
        const frames = [];
        for (let step = 0; step < 60; step += 1) {
          body.scrollTop = (body.scrollHeight / 60) * step;
          const begun = performance.now();
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
          frames.push(performance.now() - begun);
        }
        frames.sort((a, b) => a - b);
        body.scrollTop = 0;
        return { median: frames[30], p95: frames[57], nodes: document.querySelectorAll(".grid-row").length, heap: Math.round(performance.memory.usedJSHeapSize / 1e6) };
      });
      console.log(`  100,000 rows: scroll frame median ${Math.round(figures.median)} ms, p95 ${Math.round(figures.p95)} ms, ${figures.nodes} row elements, heap ${figures.heap} MB`);
      assert.ok(figures.nodes < 120, JSON.stringify(figures));
      if (process.env.BUDGETS === "strict") assert.ok(figures.p95 < 34 && figures.heap < 60, JSON.stringify(figures));
    }
    await tab.locator("[data-find]").fill("kind:output noise");
    await until("the filter leaves few rows", async () => (await count()) < 30);
    // A page that comes late misses what the buffer dropped, and says so.
    assert.ok((await world.api("/api/query", { query: "overview" }, tab)).body.buffer.dropped > 0, "the buffer keeps fewer lines than were written");
    await tab.evaluate(() => { location.hash = "#/traffic?f="; });
    await tab.reload();
    await until("the rows of the buffer", async () => (await store(tab, "total")) > 1000);
    await tab.locator(".grid-body").evaluate((body) => { body.scrollTop = 0; });
    const gap = tab.locator(".grid-row.kind-gap:not([hidden])").first();
    await gap.waitFor({ timeout: WAIT });
    assert.match(await gap.innerText(), /[\d,]+ older messages were dropped/);
    await tab.screenshot({ path: new URL("../../target/inspector/shots/traffic-gap-light-1280.png", import.meta.url).pathname });
    await tab.close();
    await other.stop();
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

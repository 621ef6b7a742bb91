// The Inbox: questions are answered in the page, and never by accident.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder, start, test, until, WAIT } from "./harness.mjs";

export function inbox(world) {
  const { page, assert } = world;
  const ready = (button) => until("the button is ready", async () => (await button.getAttribute("aria-disabled")) === "false");
  const waiting = async () => (await world.api("/api/query", { query: "inbox" })).body.waiting;

  test("an_empty_inbox_says_what_would_arrive", async () => {
    await world.open("#/");
    await world.declineAll();
    await world.open("#/inbox");
    await page.getByText("Nothing waits for you").waitFor({ timeout: WAIT });
    await world.shot("inbox-empty-light-1280");
  });

  test("a_question_is_answered_in_the_page", async () => {
    await world.open("#/inbox");
    const call = world.call("forms__wipe");
    await page.getByText("It cannot be undone.").first().waitFor({ timeout: WAIT });
    await page.locator("#waiting", { hasText: "1" }).waitFor();
    await world.shot("inbox-question-light-1280");
    const deny = page.locator(".answer").getByRole("button", { name: "Deny" });
    await ready(deny);
    await deny.click();
    await until("the question is gone", async () => (await waiting()).length === 0);
    const { code } = await call;
    assert.notEqual(code, 0);
    await page.locator(".inbox-list").getByText("no", { exact: true }).first().waitFor({ timeout: WAIT });
  });

  test("an_early_click_is_no_consent_and_no_shortcut_answers", async () => {
    await world.open("#/");
    const call = world.call("forms__wipe");
    await until("a question", async () => (await waiting()).length === 1);
    await page.evaluate(() => { location.hash = "#/inbox"; });
    const allow = page.locator(".answer").getByRole("button", { name: "Allow" });
    await allow.waitFor();
    // A click that no person made, and keys that are not Space.
    await allow.evaluate((button) => button.click());
    await ready(allow);
    await allow.evaluate((button) => button.click());
    await allow.focus();
    for (const key of ["Enter", "y", "a", "Control+Enter"]) await page.keyboard.press(key);
    await page.waitForTimeout(300);
    assert.equal((await waiting()).length, 1);
    await allow.focus();
    await page.keyboard.press("Space");
    await until("the question is answered", async () => (await waiting()).length === 0);
    const { output, code } = await call;
    assert.equal(code, 0, output);
    assert.match(output, /wiped/);
  });

  /** Waits for the question of a kind and goes to it. */
  const goTo = async (kind) => {
    const question = await until(`a question of the kind ${kind}`, async () => (await waiting()).find((each) => each.asks.kind === kind));
    await page.evaluate((id) => { location.hash = `#/inbox/${id}`; }, question.id);
    await page.locator(".question").waitFor();
    return question;
  };
  const press = async (name) => {
    const button = page.locator(".answer").getByRole("button", { name, exact: true });
    await ready(button);
    await button.click();
  };
  const gone = (question) => until("the question is answered", async () => (await waiting()).every((each) => each.id !== question.id));

  test("one_question_in_page_and_terminal_one_answer_counts", async () => {
    const home = folder("both");
    const other = await start(world.binary, ["-c", `${home}/bowline.toml`, "up", "--port", "0", "--no-token"], { home, config: world.smallConfig });
    const tab = await world.context.newPage();
    await tab.goto(other.link);
    await tab.waitForURL(`${other.origin}/`);
    await tab.evaluate(() => { location.hash = "#/inbox"; });
    const asked = () => world.api("/api/query", { query: "inbox" }, tab).then(({ body }) => body);
    const prompts = () => other.output().split("forms>").length - 1;
    // The terminal answers, and the page says so.
    const first = world.callAt(other, "forms__wipe");
    await until("the question is in the page", async () => (await asked()).waiting.length === 1);
    await tab.getByText("It cannot be undone.").first().waitFor({ timeout: WAIT });
    await until("the question is in the terminal", () => prompts() === 1);
    other.type("y\r");
    assert.equal((await first).code, 0, (await first).output);
    await until("the page knows", async () => (await asked()).answered[0]?.by === "terminal");
    await tab.locator(".inbox-row", { hasText: "wipe" }).first().click();
    await tab.getByText("answered in the terminal").waitFor({ timeout: WAIT });
    await tab.screenshot({ path: new URL("../../target/inspector/shots/inbox-answered-light-1280.png", import.meta.url).pathname });
    // The page answers, and the terminal says so.
    await tab.evaluate(() => { location.hash = "#/inbox"; });
    const second = world.callAt(other, "forms__wipe");
    await until("the question is in the terminal", () => prompts() === 2);
    const deny = tab.locator(".answer").getByRole("button", { name: "Deny" });
    await until("the button is ready", async () => (await deny.getAttribute("aria-disabled")) === "false");
    const question = (await asked()).waiting[0].id;
    await deny.click();
    assert.notEqual((await second).code, 0);
    await until("the terminal knows", () => other.output().includes("answered in the inspector"));
    other.type("y\r");
    // A second answer does not count.
    assert.equal((await world.api("/api/act", { action: "answer", question, answer: { kind: "allow", scope: "once", covers: "tool" } }, tab)).status, 409);
    assert.deepEqual((await asked()).answered.slice(0, 2).map((each) => [each.by, each.allowed]), [["page", false], ["terminal", true]]);
    await tab.close();
    await other.stop();
  });

  test("a_changed_tool_shows_its_difference", async () => {
    await world.open("#/inbox");
    assert.equal((await world.call("forms__shape", "sides=3")).code, 0);
    assert.equal((await world.call("forms__reshape")).code, 0);
    const call = world.call("forms__shape", "sides=4");
    const question = await goTo("changed");
    await page.getByText("shape changed. Use it from now on?").waitFor();
    const difference = page.locator(".diff");
    await difference.locator(".diff-added", { hasText: "reads your mail" }).waitFor();
    await difference.locator(".diff-removed", { hasText: "Returns a shape." }).waitFor();
    assert.equal(await difference.locator(".diff-added", { hasText: "sides" }).count(), 0);
    await world.shot("inbox-changed-light-1280");
    await press("Allow");
    await gone(question);
    const { output, code } = await call;
    assert.equal(code, 0, output);
    assert.match(output, /4 sides/);
  });

  test("a_form_is_accepted_declined_cancelled", async () => {
    for (const [button, expected] of [["Send", "hello Ada"], ["Decline", "hello decline"], ["Not now", "hello cancel"]]) {
      await world.open("#/explore/forms/tool/ask");
      await page.locator("[data-run]").click();
      const question = await goTo("form");
      // The words of the server are quoted; ours are around them.
      await page.locator("blockquote", { hasText: "What is your name?" }).waitFor();
      if (button === "Send") {
        await page.locator(".question").getByLabel("Name").fill("Ada");
        await world.shot("inbox-form-light-1280");
      }
      await press(button);
      await gone(question);
      await page.evaluate(() => { location.hash = "#/explore/forms/tool/ask"; });
      await page.locator(".result").getByText(expected).first().waitFor({ timeout: WAIT });
    }
  });

  test("a_visit_opens_only_after_yes", async () => {
    await world.open("#/explore/portal/tool/sign_in");
    for (const yes of [false, true]) {
      const visits = world.site.visits.length;
      const pages = world.context.pages().length;
      await page.locator("[data-run]").click();
      const question = await goTo("visit");
      await page.locator("blockquote", { hasText: "Sign in to continue" }).waitFor();
      // The whole address is there, and nothing of it is a link.
      assert.equal(await page.locator(".visit-url").innerText(), `${world.site.origin}/login?state=9f2c41d0`);
      assert.match(await page.locator(".visit-host").innerText(), /127\.0\.0\.1/);
      assert.equal(await page.locator(".visit a").count(), 0);
      await world.shot("inbox-visit-light-1280");
      await page.locator(".visit-url").click();
      assert.deepEqual([world.site.visits.length, world.context.pages().length], [visits, pages]);
      if (!yes) {
        await press("Decline");
        await gone(question);
        assert.deepEqual([world.site.visits.length, world.context.pages().length], [visits, pages]);
      } else {
        const opened = world.context.waitForEvent("page");
        await press("Open page");
        const tab = await opened;
        await tab.waitForLoadState();
        assert.equal(tab.url(), `${world.site.origin}/login?state=9f2c41d0`);
        // The page that was opened cannot reach back.
        assert.deepEqual([await tab.evaluate(() => window.opener), await tab.evaluate(() => document.referrer)], [null, ""]);
        await gone(question);
        // The host opens it only if the page did not.
        assert.equal(world.site.visits.length, visits + 1);
        await tab.close();
      }
      await page.evaluate(() => { location.hash = "#/explore/portal/tool/sign_in"; });
      await page.locator(".result").getByText(yes ? "hello accept" : "hello decline").first().waitFor({ timeout: WAIT });
    }
  });

  test("a_blocked_page_is_not_visited", async () => {
    await world.open("#/explore/portal/tool/sign_in");
    const visits = world.site.visits.length;
    await page.locator("[data-run]").click();
    const question = await goTo("visit");
    // A browser that blocks pop-ups returns nothing.
    await page.evaluate(() => {
      globalThis.given = globalThis.open;
      globalThis.open = () => null;
    });
    await press("Open page");
    await page.getByText("The browser did not open the page").waitFor({ timeout: WAIT });
    await world.shot("inbox-blocked-light-1280");
    assert.ok((await waiting()).some((each) => each.id === question.id), "it is not answered");
    assert.equal(world.site.visits.length, visits);
    await page.getByRole("button", { name: "Copy the address" }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `${world.site.origin}/login?state=9f2c41d0`);
    await page.evaluate(() => { globalThis.open = globalThis.given; });
    const opened = world.context.waitForEvent("page");
    await press("Open page");
    await (await opened).close();
    await gone(question);
  });

  test("sampling_is_edited_and_sent", async () => {
    await world.open("#/explore/modern/tool/test_sampling");
    await page.locator(".item-name", { hasText: "test_sampling" }).waitFor({ timeout: WAIT });
    await page.locator(".call-form input.input, .call-form textarea").first().fill("What is the capital of Sweden?");
    await page.locator("[data-run]").click();
    const before = world.site.prompts.length;
    const asked = await goTo("sample");
    const request = page.getByLabel("Request to the model");
    assert.match(await request.inputValue(), /capital of Sweden/);
    assert.equal(world.site.prompts.length, before, "nothing is sent before the answer");
    await world.shot("inbox-sampling-light-1280");
    await request.fill((await request.inputValue()).replace("Sweden", "Norway"));
    await press("Allow");
    await gone(asked);
    const answered = await goTo("sample_result");
    assert.match(JSON.stringify(world.site.prompts.at(-1)), /capital of Norway/);
    assert.equal(world.site.prompts.length, before + 1);
    const answer = page.getByLabel("Answer of the model");
    assert.match(await answer.inputValue(), /The model says Oslo/);
    await answer.fill((await answer.inputValue()).replace("Oslo", "Bergen"));
    await press("Allow");
    await gone(answered);
    await page.evaluate(() => { location.hash = "#/explore/modern/tool/test_sampling"; });
    await page.locator(".result").getByText(/The model says Bergen/).first().waitFor({ timeout: WAIT });
  });

  test("a_start_question_is_answered_in_the_terminal_only", async () => {
    const home = folder("project");
    mkdirSync(join(home, "run"), { mode: 0o700 });
    mkdirSync(join(home, "work"));
    // A server of a project needs an approval before its program starts.
    writeFileSync(join(home, "work", "bowline.toml"), `[servers.theirs]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify([world.script, "forms"])}\n`);
    const other = await start(world.binary, ["up", "--port", "0", "--no-token"], { home });
    const tab = await world.context.newPage();
    await tab.goto(other.link);
    await tab.waitForURL(`${other.origin}/`);
    const overview = () => world.api("/api/query", { query: "overview" }, tab).then(({ body }) => body.servers.find((each) => each.name === "theirs"));
    const before = await until("the server of the project", overview);
    assert.equal(before.state, "needs_approval");
    for (const action of ["start", "restart"]) await world.api("/api/act", { action, server: "theirs" }, tab);
    await world.api("/api/act", { action: "send", server: "theirs", method: "tools/call", params: { name: "echo", arguments: { text: "x" } } }, tab);
    const question = await until("the question", async () => (await world.api("/api/query", { query: "inbox" }, tab)).body.waiting.find((each) => each.asks.kind === "start"));
    assert.equal(question.terminal_only, true);
    // Whoever asks the interface itself gets no further than the page.
    for (const answer of [{ kind: "allow", scope: "always", covers: "server" }, { kind: "allow" }, { kind: "decline" }, { kind: "cancel" }]) {
      assert.equal((await world.api("/api/act", { action: "answer", question: question.id, answer }, tab)).status, 403, answer.kind);
    }
    await tab.evaluate((id) => { location.hash = `#/inbox/${id}`; }, question.id);
    await tab.getByText("answered in the terminal only").waitFor({ timeout: WAIT });
    assert.equal(await tab.locator(".answer").count(), 0);
    await tab.screenshot({ path: new URL("../../target/inspector/shots/needs-approval-light-1280.png", import.meta.url).pathname });
    assert.equal((await overview()).state, "needs_approval");
    assert.ok(!(await world.api("/api/query", { query: "calls", after: 0 }, tab)).body.heads.some((head) => head.peer === "theirs" && (head.leg === "server" || head.kind === "output")));
    // The terminal answers, and only then the program starts.
    await until("the question is in the terminal", () => other.output().includes("theirs"));
    other.type("y\r");
    await until("the program runs", async () => ["ready", "idle", "starting"].includes((await overview()).state));
    await tab.close();
    await other.stop();
  });
}

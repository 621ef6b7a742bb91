// Accepted definitions, remembered answers, and the audit log.
import { folder, start, test, until, WAIT } from "./harness.mjs";

export function policy(world) {
  const { page, assert, context } = world;
  const shots = (name) => new URL(`../../target/inspector/shots/${name}.png`, import.meta.url).pathname;
  /** A host of its own, because what it remembers must not disturb other tests. */
  const fresh = async (name, body) => {
    const home = folder(name);
    const other = await start(world.binary, ["-c", `${home}/bowline.toml`, "up", "--port", "0", "--no-token"], { home, config: world.smallConfig });
    const tab = await context.newPage();
    await tab.goto(other.link);
    await tab.waitForURL(`${other.origin}/`);
    await world.api("/api/act", { action: "start", server: "forms" }, tab);
    const go = (hash) => tab.evaluate((to) => { location.hash = to; }, hash);
    const waiting = async () => (await world.api("/api/query", { query: "inbox" }, tab)).body.waiting;
    await body({ other, tab, go, waiting });
    await tab.close();
    await other.stop();
  };

  test("a_changed_definition_is_accepted_as_shown", () => fresh("definitions", async ({ other, tab, go, waiting }) => {
    assert.equal((await world.callAt(other, "forms__shape", "sides=3")).code, 0);
    await go("#/rules/definitions");
    await tab.getByText("Nothing changed").waitFor({ timeout: WAIT });
    assert.equal((await world.callAt(other, "forms__reshape")).code, 0);
    // The view follows the list of the server.
    const entry = tab.locator(".pin-list li", { hasText: "shape" });
    await entry.locator(".diff-added", { hasText: "reads your mail" }).waitFor({ timeout: WAIT });
    await entry.locator(".diff-removed", { hasText: "Returns a shape." }).waitFor();
    assert.equal(await tab.locator(".pin-list li").count(), 1);
    await tab.screenshot({ path: shots("rules-changed-light-1280") });
    await entry.getByRole("button", { name: "Accept as shown" }).click();
    await tab.getByText("Nothing changed").waitFor({ timeout: WAIT });
    assert.equal((await world.callAt(other, "forms__shape", "sides=4")).code, 0);
    assert.equal((await waiting()).length, 0);
  }));

  test("a_remembered_answer_is_forgotten", () => fresh("answers", async ({ other, tab, go, waiting }) => {
    await go("#/rules/answers");
    await tab.getByText("No answer is remembered").waitFor({ timeout: WAIT });
    const answer = async (button, scope) => {
      const call = world.callAt(other, "forms__wipe");
      await until("the question", async () => (await waiting()).length === 1);
      await go("#/inbox");
      if (scope) await tab.getByLabel(scope).check();
      const chosen = tab.locator(".answer").getByRole("button", { name: button });
      await until("the button is ready", async () => (await chosen.getAttribute("aria-disabled")) === "false");
      await chosen.click();
      return call;
    };
    assert.equal((await answer("Allow", "always")).code, 0);
    assert.equal((await world.callAt(other, "forms__wipe")).code, 0);
    await go("#/rules/answers");
    const row = tab.locator("tbody tr", { hasText: "wipe" });
    await row.getByText("allow").waitFor({ timeout: WAIT });
    assert.match(await row.innerText(), /always/);
    await tab.screenshot({ path: shots("rules-answers-light-1280") });
    await row.getByRole("button", { name: "Forget" }).click();
    await tab.getByText("No answer is remembered").waitFor({ timeout: WAIT });
    // A person is asked again. Neither yes nor no is an answer, too, and is not remembered.
    assert.notEqual((await answer("Not now")).code, 0);
    await until("the question is gone", async () => (await waiting()).length === 0);
    assert.deepEqual((await world.api("/api/query", { query: "answers" }, tab)).body.answers, []);
    assert.equal((await world.api("/api/query", { query: "inbox" }, tab)).body.answered[0].allowed, undefined);
  }));

  test("the_audit_log_leads_to_the_call", async () => {
    await world.open("#/rules/audit");
    await world.call("forms__echo", "text=first line");
    await world.call("forms__echo", "text=second line");
    const call = await world.callOf("forms__echo");
    await page.getByLabel("Event").selectOption("call");
    await page.getByLabel("Server").selectOption("forms");
    await page.getByLabel("Find in the audit log").fill("echo");
    const rows = page.locator(".audit tbody tr");
    await until("lines about calls of echo only", async () => {
      const lines = await rows.evaluateAll((list) => list.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));
      return lines.length >= 2 && lines.every(([, event, , server, what]) => event === "call" && server === "forms" && what === "tools/call echo");
    });
    await world.shot("rules-audit-light-1280");
    await rows.first().getByRole("button", { name: "The whole line" }).click();
    await page.getByRole("dialog").getByText("durationMs").waitFor();
    await page.keyboard.press("Escape");
    // The latest line is about the latest call.
    await rows.first().getByRole("link", { name: "See it in Traffic" }).click();
    await page.waitForURL(/#\/traffic\/\d+/);
    const seq = Number(/traffic\/(\d+)/.exec(page.url())[1]);
    const { body } = await world.api("/api/query", { query: "call", call: seq });
    assert.equal(body.root.head.seq, call);
    await page.locator(".detail-body").waitFor({ timeout: WAIT });
  });
}

// Control from the terminal, Rules, checks, and comparing calls.
import { join } from "node:path";
import { folder, run, start, test, until, WAIT } from "./harness.mjs";

export function rules(world) {
  const { page, assert, context } = world;
  const shots = (name) => new URL(`../../target/inspector/shots/${name}.png`, import.meta.url).pathname;

  test("control_is_granted_in_the_terminal", async () => {
    const home = folder("control");
    const other = await start(world.binary, ["-c", `${home}/bowline.toml`, "up", "--port", "0", "--no-token"], { home, config: world.smallConfig });
    const link = async () => /http:\S+\/open#\S+/.exec((await run(world.binary, ["open", "--print"], home)).output)[0];
    const tab = await context.newPage();
    // Another name of this machine is another origin. A link with control replaces a key that only looks, and no link takes control away.
    const named = (text) => text.replace("127.0.0.1", "localhost");
    const view = await link();
    for (const [next, grade] of [[view, "view"], [view, "view"], [other.link, "control"], [await link(), "control"], [other.link, "control"]]) {
      await tab.goto("about:blank");
      await tab.goto(named(next));
      await tab.waitForURL(`${named(other.origin)}/`);
      assert.equal((await world.api("/api/query", { query: "overview" }, tab)).body.grade, grade);
    }
    await tab.goto(await link());
    await tab.waitForURL(`${other.origin}/`);
    await tab.getByRole("button", { name: "Ask for control" }).waitFor({ timeout: WAIT });
    const clear = () => world.api("/api/act", { action: "clear" }, tab).then(({ status }) => status);
    assert.equal(await clear(), 403);
    await tab.getByRole("button", { name: "Ask for control" }).click();
    const digits = await tab.locator(".control-digits").innerText();
    assert.match(digits, /^\d{4}$/);
    await tab.screenshot({ path: shots("control-asked-light-1280") });
    await until("the terminal shows the digits", () => other.output().includes(digits));
    // Asking gives nothing; the answer in the terminal does.
    assert.equal(await clear(), 403);
    other.type("y\r");
    await until("the notice is gone", async () => (await tab.locator("#notices .notice").count()) === 0);
    assert.equal(await clear(), 200);
    await tab.evaluate(() => { location.hash = "#/explore/forms/tool/echo"; });
    // A place in the address starts no server; the button does.
    await tab.getByText("forms is not running").waitFor({ timeout: WAIT });
    await tab.locator(".explore-detail").getByRole("button", { name: "Start" }).click();
    await tab.getByLabel("text").fill("now it runs");
    await tab.locator("[data-run]").click();
    await tab.locator(".result").getByText("now it runs").first().waitFor({ timeout: WAIT });
    await tab.close();
    await other.stop();
  });

  test("two_calls_are_compared", async () => {
    await world.open("#/traffic");
    await world.call("forms__echo", "text=first words");
    const first = await world.callOf("forms__echo");
    await world.call("forms__echo", "text=second words");
    const second = await until("the second call", async () => { const seq = await world.callOf("forms__echo"); return seq !== first && seq; });
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${second}`);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByRole("menuitem", { name: /With the call before/ }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("first words").first().waitFor({ timeout: WAIT });
    await dialog.getByText("second words").first().waitFor();
    // Only what differs is marked: the text, in arguments and result of both.
    const marked = await dialog.locator(".json-row.changed").allInnerTexts();
    assert.equal(marked.length, 4, marked.join("\n"));
    for (const text of marked) assert.match(text, /"text": "(first|second) words"/);
    await page.waitForTimeout(300);
    await world.shot("compare-light-1280");
    await page.keyboard.press("Escape");
    // By keyboard: mark one, then the other.
    await page.locator(".grid-row[aria-selected=true]").focus();
    await page.keyboard.press("x");
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${first}`);
    await page.locator(".detail-summary dd", { hasText: `${first} and` }).waitFor({ timeout: WAIT });
    await page.locator(".grid-row[aria-selected=true]").focus();
    await page.keyboard.press("x");
    await dialog.getByText("second words").first().waitFor({ timeout: WAIT });
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("dialog[open]").count(), 0);
  });

  test("what_if_names_the_rule", async () => {
    await world.open("#/rules");
    await page.locator(".rule-list").first().getByText("wipe").first().waitFor({ timeout: WAIT });
    await page.locator("#what-if-server option", { hasText: "forms" }).waitFor({ state: "attached", timeout: WAIT });
    const calls = async () => (await world.api("/api/query", { query: "calls", after: 0 })).body.heads.filter((head) => head.method === "tools/call" && head.kind === "request").length;
    const before = await calls();
    for (const [tool, word, rule] of [["wipe", "ask", true], ["echo", "allow", false]]) {
      await page.locator("#what-if-server").selectOption("forms");
      await page.locator(`#what-if-tool option[value=${tool}]`).waitFor({ state: "attached" });
      await page.locator("#what-if-tool").selectOption(tool);
      await page.getByRole("button", { name: "Decide" }).click();
      await page.locator(".what-if-answer .status", { hasText: word }).waitFor({ timeout: WAIT });
      assert.equal(await page.locator(".rule-list li.decides").count(), rule ? 1 : 0, tool);
    }
    assert.equal(await calls(), before);
    assert.equal((await world.api("/api/query", { query: "inbox" })).body.waiting.filter((each) => each.asks.kind === "call").length, 0);
    await page.locator("#what-if-arguments").fill("{");
    await page.getByRole("button", { name: "Decide" }).click();
    await page.getByText("The arguments are not JSON yet").waitFor();
  });

  test("checks_lead_to_messages", async () => {
    await world.open("#/server/forms");
    const section = page.locator(".checks");
    await section.getByRole("button", { name: "Check" }).click();
    await section.locator(".finding, .status.ok").first().waitFor({ timeout: 50_000 });
    const { body } = await world.api("/api/query", { query: "checks", server: "forms" });
    assert.equal(body.state, "done", JSON.stringify(body));
    assert.equal(await section.locator(".finding").count(), body.findings.length);
    await page.screenshot({ path: join(shots("x"), "../server-checks-light-1280.png"), fullPage: true });
    // The server answers every wrong call, which is a finding about those very messages.
    const found = body.findings.find((each) => each.check === "unknown-tool") ?? assert.fail(JSON.stringify(body.findings));
    const link = section.locator(".finding", { hasText: "unknown-tool" }).getByRole("link").first();
    assert.equal(Number(/\d+/.exec(await link.innerText())[0]), found.messages[0]);
    await link.click();
    await page.waitForURL(new RegExp(`#/traffic/${found.messages[0]}$`));
    await page.locator(".detail-summary dd", { hasText: String(found.messages[0]) }).waitFor({ timeout: WAIT });
    const { body: message } = await world.api("/api/query", { query: "message", seq: found.messages[0] });
    assert.deepEqual([message.head.peer, message.head.leg], ["forms", "server"]);
  });
}

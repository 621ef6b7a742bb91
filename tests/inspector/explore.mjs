// Explore: forms, results, progress, resources and prompts.
import { test, until, WAIT } from "./harness.mjs";

export function explore(world) {
  const { page, assert } = world;
  const open = async (server, kind, name) => {
    await world.open("#/explore");
    await page.evaluate((place) => { location.hash = place; }, `#/explore/${encodeURIComponent(server)}/${kind}/${encodeURIComponent(name)}`);
    await page.locator(".call-form").waitFor({ timeout: WAIT });
  };
  const tab = (label) => page.locator(".form-head").getByRole("tab", { name: label }).click();
  const source = () => page.getByLabel("Arguments as JSON");
  const value = async () => {
    await tab("JSON");
    const text = await source().inputValue();
    await tab("Form");
    return JSON.parse(text);
  };
  const set = async (text) => {
    await tab("JSON");
    await source().fill(text);
    await tab("Form");
  };
  const runIt = async () => {
    await page.locator("[data-run]").click();
    await page.locator(".result .verdict").waitFor({ timeout: WAIT });
  };

  test("a_nested_schema_becomes_a_form", async () => {
    await open("forms", "tool", "nested");
    await set('{"title":"","owner":{"name":"","address":{}}}');
    await page.getByLabel("title", { exact: false }).first().fill("Hello");
    await page.getByLabel("name *").first().fill("Ada");
    await page.getByLabel("city").fill("Oslo");
    assert.deepEqual(await value(), { title: "Hello", owner: { name: "Ada", address: { city: "Oslo" } } });
    await world.shot("explore-form-light-1280");
  });

  test("one_of_switches_fields_and_keeps_values", async () => {
    await open("forms", "tool", "nested");
    await set('{"title":"x","target":{"type":"name","name":"Ada"}}');
    await page.getByRole("button", { name: "By number" }).click();
    await page.getByLabel("number *").fill("7");
    assert.deepEqual((await value()).target, { type: "number", number: 7 });
    await page.getByRole("button", { name: "By name" }).click();
    assert.deepEqual((await value()).target, { type: "name", name: "Ada" });
  });

  test("titled_choices_send_their_values", async () => {
    await open("forms", "tool", "nested");
    await set('{"title":"x"}');
    await page.getByLabel("Green").check();
    assert.deepEqual(await value(), { title: "x", color: "g" });
  });

  test("default_null_and_absent_differ", async () => {
    await open("forms", "tool", "nested");
    await set('{"title":"x"}');
    assert.deepEqual(await value(), { title: "x" });
    const field = page.locator(".field", { has: page.getByText("note", { exact: true }) }).last();
    await field.hover();
    await field.getByRole("button", { name: "null" }).click();
    assert.deepEqual(await value(), { title: "x", note: null });
    await page.getByLabel("note").fill("");
    await page.getByLabel("note").fill("a");
    await page.getByLabel("note").fill("");
    assert.deepEqual(await value(), { title: "x", note: "" });
    await field.hover();
    await field.getByRole("button", { name: "Leave out" }).click();
    assert.deepEqual(await value(), { title: "x" });
  });

  test("errors_appear_at_their_field", async () => {
    await open("forms", "tool", "nested");
    await set('{"title":"x","lines":["milk","y"]}');
    const second = page.locator(".list-row").nth(1);
    await second.locator("input").fill("");
    await second.locator(".problem").waitFor({ timeout: WAIT });
    await world.shot("explore-problem-light-1280");
    await second.locator("input").fill("bread");
    await until("the problem is gone", async () => (await second.locator(".problem").count()) === 0);
  });

  test("json_and_form_are_one_value_and_numbers_stay_exact", async () => {
    await open("everything", "tool", (await world.api("/api/query", { query: "entries" })).body.servers.find((each) => each.server === "everything").items.find((each) => each.kind === "tool" && /sum|add/.test(each.name))?.name ?? "add");
    await tab("JSON");
    await source().fill('{"a":12345678901234567890,"b":1.50}');
    await tab("Form");
    await tab("JSON");
    assert.match(await source().inputValue(), /12345678901234567890[\s\S]*1\.50/);
  });

  test("every_content_type_is_shown", async () => {
    await open("forms", "tool", "contents");
    await runIt();
    const result = page.locator(".result");
    await result.locator("strong", { hasText: "strong" }).waitFor();
    await until("the image is drawn", () => result.locator("img").evaluate((image) => image.naturalWidth === 1));
    await result.locator("audio").waitFor();
    await result.getByText("inner text").waitFor();
    await result.getByRole("link", { name: "Read it in Explore" }).waitFor();
    await world.shot("explore-contents-light-1280");
  });

  test("a_result_that_violates_its_schema_is_marked", async () => {
    await open("forms", "tool", "typed");
    await set('{"wrong":true}');
    await runIt();
    await page.locator(".verdict", { hasText: "Done, but it violates its output schema" }).waitFor({ timeout: WAIT });
    assert.equal(await page.locator(".verdict.ok").count(), 0);
    const problems = await page.locator(".result .callout").innerText();
    assert.ok(problems.includes("/rows/0/city") && problems.includes('"customers" is a required property'), problems);
    await set("{}");
    await runIt();
    await page.getByText("fits its output schema").waitFor({ timeout: WAIT });
    await page.locator(".result").getByRole("tab", { name: "Table" }).click();
    await page.getByRole("button", { name: "customers" }).click();
    assert.equal(await page.locator(".result table.data tbody tr").first().innerText(), "Oslo\t3");
  });

  test("a_failed_call_has_one_of_three_headlines", async () => {
    await open("forms", "tool", "fail");
    await runIt();
    await page.getByText("The tool reported an error").waitFor({ timeout: WAIT });
    await page.locator(".result").getByText("the disk is full").first().waitFor();
    await world.shot("explore-failed-light-1280");
    await open("forms", "tool", "reject");
    await runIt();
    await page.getByText("The request was rejected").waitFor({ timeout: WAIT });
    await page.locator(".result").getByText("no such path").first().waitFor();
  });

  test("progress_moves_and_cancel_cancels", async () => {
    await open("forms", "tool", "slow");
    await page.locator("[data-run]").click();
    await page.getByText(/of 1,000/).waitFor({ timeout: WAIT });
    const first = await page.getByText(/of 1,000/).innerText();
    await until("progress moves", async () => (await page.getByText(/of 1,000/).innerText()) !== first);
    await world.shot("explore-running-light-1280");
    await page.locator(".run-actions").getByRole("button", { name: "Cancel" }).click();
    await page.locator(".verdict", { hasText: "Cancelled" }).waitFor({ timeout: WAIT });
  });

  test("a_resource_is_read_and_a_template_is_filled_in", async () => {
    await open("forms", "resource", "memo://milk");
    await runIt();
    await page.getByText("memo of memo://milk").waitFor({ timeout: WAIT });
    await open("forms", "template", "memo://{topic}");
    await page.getByLabel("topic").fill("bread & milk");
    await runIt();
    await page.getByText("memo of memo://bread%20%26%20milk").waitFor({ timeout: WAIT });
  });

  test("a_prompt_shows_its_messages_and_completes", async () => {
    await open("forms", "prompt", "review");
    const field = page.getByLabel("language");
    await field.fill("ru");
    await until("completions", async () => (await page.locator("datalist option").count()) === 2);
    await field.fill("rust");
    await runIt();
    await page.getByText("Review this rust code.").waitFor({ timeout: WAIT });
  });

  test("a_destructive_tool_asks_first", async () => {
    await open("forms", "tool", "wipe");
    await page.locator("[data-run]").click();
    await page.getByText("says that it is destructive").waitFor();
    await world.shot("explore-destructive-light-1280");
    await page.getByRole("button", { name: "No" }).click();
  });

  test("a_call_is_run_by_keyboard", async () => {
    await open("forms", "tool", "echo");
    await page.getByLabel("text").fill("by keyboard");
    await page.keyboard.press("Control+Enter");
    await page.locator(".result").getByText("by keyboard").first().waitFor({ timeout: WAIT });
    await world.shot("explore-result-light-1280");
  });
}

// The Inbox: questions are answered in the page, and never by accident.
import { test, until, WAIT } from "./harness.mjs";

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
}

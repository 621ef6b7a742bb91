// A hostile server: its text stays text, and nothing leaves the machine.
import { test, until, WAIT } from "./harness.mjs";

export function hostile(world) {
  const { page, assert, complaints, secret } = world;
  const untouched = async () => {
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(complaints.filter((each) => each.startsWith("request") || each.startsWith("dialog")), []);
    assert.equal(await page.locator("main script, main iframe, main object, main embed, main link, main style, main base").count(), 0);
  };

  test("no_text_of_a_server_becomes_markup", async () => {
    await world.open("#/explore");
    const { body } = await world.api("/api/query", { query: "entries" });
    const items = body.servers.find((each) => each.server === "hostile").items;
    assert.ok(items.length > 20);
    for (const item of [...items.filter((each) => each.kind === "tool").filter((_, index) => index % 2 === 0), ...items.filter((each) => each.kind !== "tool").slice(0, 2)]) {
      await page.evaluate((place) => { location.hash = place; }, `#/explore/hostile/${item.kind}/${encodeURIComponent(item.name)}`);
      await page.locator(".call-form").waitFor({ timeout: WAIT });
      await untouched();
    }
    await page.evaluate(() => { location.hash = "#/explore/hostile/tool/tool0"; });
    await page.locator(".item-name", { hasText: "tool0" }).waitFor();
    await page.locator("[data-run]").click();
    await page.locator(".result .verdict").waitFor({ timeout: WAIT });
    await page.locator(".result .parts").waitFor({ timeout: WAIT });
    await untouched();
    await world.shot("hostile-result-light-1280");
    for (const label of ["JSON", "As sent"]) {
      const tab = page.locator(".result").getByRole("tab", { name: label });
      if (await tab.count()) await tab.click();
      await page.waitForTimeout(200);
      await untouched();
    }
    for (const hash of ["#/traffic", "#/server/hostile", "#/"]) {
      await page.evaluate((place) => { location.hash = place; }, hash);
      await page.waitForTimeout(300);
      await untouched();
    }
  });

  test("no_link_has_another_scheme", async () => {
    await world.open("#/explore/hostile/tool/tool0");
    await page.locator("main a").first().waitFor();
    const links = await page.evaluate(() => [...document.querySelectorAll("a")].map((link) => link.getAttribute("href")));
    assert.deepEqual(links.filter((href) => !/^(#|blob:)/.test(href)), []);
  });

  test("an_svg_runs_no_script", async () => {
    await world.open("#/explore/hostile/tool/tool0");
    const image = page.locator(".result .media img").first();
    if (await image.count()) assert.match(await image.getAttribute("src"), /^blob:/);
    await untouched();
  });

  test("hidden_characters_are_shown", async () => {
    await world.open("#/traffic?f=server:hostile");
    const text = await until("a row of the server", async () => {
      const all = await page.locator(".grid-body").innerText();
      return all.includes("hostile") && all;
    });
    assert.ok(!/[\u202e\u200b]/.test(text));
    await page.evaluate(() => { location.hash = "#/explore/hostile/tool/tool8"; });
    await page.locator(".item-name", { hasText: "tool8" }).waitFor();
    assert.ok(!/[\u202e\u200b]/.test(await page.locator("main").innerText()));
  });

  test("a_megabyte_name_keeps_the_layout", async () => {
    await world.open("#/explore/hostile/tool/huge");
    await page.locator(".item-name", { hasText: "huge" }).waitFor();
    const [width, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(width <= inner, `${width} > ${inner}`);
    await page.locator("[data-run]").waitFor({ timeout: WAIT });
  });

  test("a_copied_command_is_inert", async () => {
    await world.open("#/explore");
    const { body } = await world.api("/api/query", { query: "entries" });
    const item = body.servers.find((each) => each.server === "hostile").items.find((each) => each.kind === "tool" && each.name.startsWith("tool11"));
    await page.evaluate((place) => { location.hash = place; }, `#/explore/hostile/tool/${encodeURIComponent(item.name)}`);
    await page.locator("[data-run]").click();
    await page.locator(".result .verdict").waitFor({ timeout: WAIT });
    const { body: calls } = await world.api("/api/query", { query: "calls", after: 0 });
    const seq = calls.heads.filter((head) => head.kind === "request" && head.peer === "page").at(-1).seq;
    const { body: copied, status } = await world.api("/api/query", { query: "copy", seq, as: "command" });
    assert.equal(status, 200, JSON.stringify(copied));
    assert.ok(!/[\n\r\x00-\x1f]/.test(copied.text), copied.text);
  });

  test("secrets_are_masked_in_messages_and_copies", async () => {
    await world.open("#/traffic");
    const { output } = await world.call("forms__secret", "password=correct-horse-battery");
    assert.ok(output.includes(secret), "the server repeats its token to the client");
    const call = await world.callOf("forms__secret");
    const { body: heads } = await until("the output", async () => {
      const reply = await world.api("/api/query", { query: "calls", after: 0 });
      return reply.body.heads.some((head) => head.kind === "output" && head.name?.startsWith("the token is")) && reply;
    });
    const seqs = heads.heads.filter((head) => head.seq >= call && head.size > 0).map((head) => head.seq);
    const texts = [JSON.stringify(heads)];
    let masked = 0;
    for (const seq of seqs) {
      const { body } = await world.api("/api/query", { query: "message", seq, all: true });
      texts.push(JSON.stringify(body));
      masked += body?.masked ?? 0;
    }
    for (const form of ["json", "command", "curl", "transcript"]) {
      const { body, status } = await world.api("/api/query", { query: "copy", seq: call, as: form });
      assert.equal(status, 200, form);
      texts.push(body.text);
    }
    for (const query of [{ query: "result", call }, { query: "call", call }, { query: "server", server: "forms" }, { query: "overview" }, { query: "entries" }]) texts.push(JSON.stringify((await world.api("/api/query", query)).body));
    assert.ok(masked >= 4, `${masked} masked values`);
    for (const text of texts) assert.ok(!text.includes(secret) && !text.includes("correct-horse-battery"), text.slice(0, 400));
    await page.evaluate((place) => { location.hash = place; }, `#/traffic/${call}`);
    await page.locator(".detail-tabs").getByRole("tab", { name: "Response" }).click();
    await page.locator(".detail .json").getByText("***").first().waitFor({ timeout: WAIT });
    await page.getByText(/masked values?/).waitFor();
    await page.evaluate(() => { location.hash = "#/server/forms"; });
    await page.locator(".server-body").getByText("the token is ***").first().waitFor({ timeout: WAIT });
    assert.ok(!(await page.locator("body").innerText()).includes(secret));
  });

  test("search_does_not_find_masked_text", async () => {
    await world.open("#/traffic");
    await world.call("forms__secret");
    await until("the call", () => world.callOf("forms__secret"));
    // A part would be enough to guess the rest, one letter after the other.
    for (const text of [secret, secret.slice(0, 6), secret.slice(-6)]) assert.deepEqual((await world.api("/api/query", { query: "find", text })).body.seqs, [], text);
    assert.ok((await world.api("/api/query", { query: "find", text: "structuredContent" })).body.seqs.length > 0);
    await page.locator("[data-find]").fill(`body:${secret.slice(0, 6)}`);
    await page.getByText("No call matches").waitFor({ timeout: WAIT });
  });

  test("nothing_is_requested_from_another_host", async () => untouched());
}

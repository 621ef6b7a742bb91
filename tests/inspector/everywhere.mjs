// What holds for every view: accessibility, keyboard, layout, screenshots, no complaint of the browser.
import { join } from "node:path";
import { axeSource, shots, test, until, WAIT } from "./harness.mjs";

export function everywhere(world) {
  const { page, assert, complaints, context } = world;
  const states = [
    ["home", "#/", ".home"],
    ["explore", "#/explore", ".entries a.entry"],
    ["explore-form", "#/explore/forms/tool/nested", ".call-form"],
    ["explore-result", "#/explore/forms/tool/echo", ".call-form"],
    ["traffic", "#/traffic", ".grid-body .grid-row:not([hidden])"],
    ["traffic-call", "CALL", ".detail-body"],
    ["inbox", "#/inbox", ".inbox-list"],
    ["rules", "#/rules", ".rule-list"],
    ["definitions", "#/rules/definitions", ".pin-group"],
    ["answers", "#/rules/answers", ".rules-page .blank, .rules-page table"],
    ["audit", "#/rules/audit", ".audit tbody tr"],
    ["server", "#/server/forms", ".server-body"],
  ];
  const place = async (hash) => {
    if (hash !== "CALL") return hash;
    const { body } = await world.api("/api/query", { query: "calls", after: 0 });
    return `#/traffic/${body.heads.filter((head) => head.kind === "request" && head.leg === "client" && head.method === "tools/call").at(-1)?.seq ?? 1}`;
  };
  const check = async (label) => {
    const result = await page.evaluate(async () => {
      const found = await globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] });
      return found.violations.map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
    });
    return result.map((each) => `${label}: ${each}`);
  };

  for (const theme of ["light", "dark"]) {
    for (const width of [1280, 390]) {
      test(`axe_is_clean_and_nothing_overflows_${theme}_${width}`, async () => {
        await page.setViewportSize({ width, height: width === 390 ? 844 : 800 });
        await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
        await world.open("#/");
        const problems = [];
        for (const [name, hash, selector] of states) {
          const where = await place(hash);
          await page.evaluate((to) => { location.hash = to; }, where);
          await page.locator(selector).first().waitFor({ timeout: WAIT });
          if (name === "explore-result" && (await page.locator(".result .verdict").count()) === 0) {
            await page.getByLabel("text").fill("Hello from the inspector");
            await page.locator("[data-run]").click();
            await page.locator(".result .verdict.ok").waitFor({ timeout: WAIT });
          }
          await page.waitForTimeout(400);
          if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(await axe());
          problems.push(...(await check(name)));
          const [scroll, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          if (scroll > inner) problems.push(`${name}: ${scroll} px wide in ${inner} px`);
          await page.screenshot({ path: join(shots, `${name}-${theme}-${width}.png`) });
        }
        await page.setViewportSize({ width: 1280, height: 800 });
        await page.emulateMedia({ colorScheme: "light", reducedMotion: "no-preference" });
        assert.deepEqual(problems, []);
      });
    }
  }
  let axeText = "";
  async function axe() {
    if (axeText === "") axeText = (await import("node:fs")).readFileSync(axeSource, "utf8");
    return axeText;
  }

  test("nothing_overflows_at_400_percent", async () => {
    await page.setViewportSize({ width: 320, height: 256 });
    for (const hash of ["#/", "#/explore", "#/explore/forms/tool/nested", "#/inbox", "#/rules", "#/rules/definitions", "#/rules/answers", "#/rules/audit", "#/server/forms"]) {
      await world.open(hash);
      await page.waitForTimeout(300);
      const [scroll, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(scroll <= inner, `${hash}: ${scroll} > ${inner}`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test("everything_works_by_keyboard", async () => {
    await world.open("#/");
    await page.waitForSelector(".home");
    await page.locator("#main").focus();
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.waitForSelector("[role=treegrid]");
    await page.locator(".grid-body .grid-row").first().waitFor();
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Filter");
    await page.keyboard.type("method:tools/call");
    await page.keyboard.press("Escape");
    await until("rows of the filter", async () => (await page.locator(".grid-body .grid-row:not([hidden])").count()) > 0);
    await page.locator(".grid-row[tabindex='0']").first().focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await page.locator(".grid-row[aria-expanded=true]:not([hidden])").last().focus();
    await page.keyboard.press("ArrowLeft");
    await until("the row is closed", () => page.evaluate(() => document.activeElement?.getAttribute("aria-expanded") === "false"));
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".detail-body");
    await page.keyboard.press("Escape");
    await until("the detail is closed", async () => !(await page.locator(".detail-body").isVisible()));
    await page.keyboard.press("Control+k");
    await page.keyboard.type("forms echo");
    await page.keyboard.press("Enter");
    await page.locator(".item-name", { hasText: "echo" }).waitFor({ timeout: WAIT });
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Help" }).waitFor();
    await world.shot("help-light-1280");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("dialog[open]").count(), 0);
  });

  test("the_palette_finds_tools", async () => {
    await world.open("#/");
    await page.keyboard.press("Control+k");
    await page.locator(".palette input").fill("nested");
    await page.locator(".palette [role=option]", { hasText: "nested" }).first().waitFor({ timeout: WAIT });
    await world.shot("palette-light-1280");
    await page.keyboard.press("Escape");
  });

  test("the_first_load_is_small", async () => {
    const figures = [];
    for (let round = 0; round < 5; round += 1) {
      const fresh = await context.newPage();
      await fresh.goto(`${world.host.origin}/`);
      await fresh.waitForSelector(".home");
      figures.push(await fresh.evaluate(() => {
        const shown = performance.getEntriesByName("first-view")[0].startTime;
        // The document itself, and what was asked for before Home was there. Queries are no files.
        const files = performance.getEntriesByType("resource").filter((entry) => entry.startTime <= shown && !entry.name.includes("/api/") && !entry.name.startsWith("data:"));
        return { requests: 1 + files.length, bytes: files.reduce((sum, entry) => sum + entry.decodedBodySize, 0), paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0, shown };
      }));
      await fresh.close();
    }
    const median = (name) => figures.map((each) => each[name]).sort((a, b) => a - b)[2];
    console.log(`  first load: ${median("requests")} requests, ${Math.round(median("bytes") / 1000)} kB, first paint ${Math.round(median("paint"))} ms, Home after ${Math.round(median("shown"))} ms`);
    assert.ok(median("requests") <= 16, JSON.stringify(figures));
    if (process.env.BUDGETS === "strict") assert.ok(median("paint") < 300 && median("shown") < 600, JSON.stringify(figures));
  });

  test("no_console_error", async () => assert.deepEqual(complaints, []));
}

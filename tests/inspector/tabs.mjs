// Several tabs of one browser: which of them is connected, and which tells a person that somebody waits.
import { folder, launchTabs, start, test, until, WAIT } from "./harness.mjs";

export function tabs(world) {
  const { assert } = world;
  /** The states of the streams that a tab opened: true while one is open. */
  const streams = (tab) => {
    const open = new Set();
    tab.on("request", (request) => { if (request.url().includes("/api/events")) open.add(request); });
    for (const end of ["requestfinished", "requestfailed"]) tab.on(end, (request) => open.delete(request));
    return () => open.size;
  };
  const isHidden = (tab) => tab.evaluate(() => document.hidden);
  /** A host and a browser for the tests of this file; both end with the run. */
  let opened = null;
  const browser = async (body) => {
    opened ??= (async () => {
      const home = folder("tabs-home");
      const other = await start(world.binary, ["-c", `${home}/bowline.toml`, "up", "--port", "0", "--no-token"], { home, config: world.smallConfig });
      const { context } = await launchTabs();
      const first = context.pages()[0] ?? (await context.newPage());
      const open = streams(first);
      await first.goto(other.link);
      await first.waitForURL(`${other.origin}/`);
      await world.api("/api/act", { action: "start", server: "forms" }, first);
      return { other, context, first, open };
    })();
    const all = await opened;
    await all.first.bringToFront();
    await all.first.waitForSelector("#live[data-state=live]");
    try {
      await body(all);
    } finally {
      for (const tab of all.context.pages()) if (tab !== all.first) await tab.close();
    }
  };

  test("a_hidden_tab_releases_its_stream_and_catches_up", async () => {
    await browser(async ({ other, context, first, open }) => {
      await first.evaluate(() => { location.hash = "#/traffic"; });
      await first.waitForSelector("[role=treegrid]");
      assert.deepEqual([await isHidden(first), open()], [false, 1]);
      const second = await context.newPage();
      const secondOpen = streams(second);
      await second.goto(`${other.origin}/#/explore/forms/tool/echo`);
      await second.bringToFront();
      await until("the first tab is hidden", () => isHidden(first));
      await until("its stream is released", () => open() === 0);
      assert.equal(secondOpen(), 1);
      await second.getByLabel("text").fill("while hidden");
      await second.locator("[data-run]").click();
      await second.locator(".verdict.ok").waitFor({ timeout: WAIT });
      const known = () => first.evaluate(async () => {
        const base = document.querySelector("script[type=module]").src.replace(/app\.js$/, "");
        return (await import(`${base}traffic/store.js`)).newest();
      });
      const before = await known();
      await first.bringToFront();
      await until("it is connected again", () => open() === 1);
      await first.locator(".grid-row:not([hidden])", { hasText: "forms__echo" }).first().waitFor({ timeout: WAIT });
      assert.ok((await known()) > before);
      assert.equal(await first.locator("#live").getAttribute("data-state"), "live");
      await until("the second tab released its own", () => secondOpen() === 0);
      // It resumes where it stopped: nothing is missing and nothing is twice.
      assert.equal(await first.getByText("dropped here").count(), 0);
      assert.equal(await first.locator(".grid-row[aria-level='1']:not([hidden])", { hasText: "tools/call forms__echo" }).count(), 1);
    });
  });

  test("one_hidden_tab_notifies", async () => {
    await browser(async ({ other, context, first }) => {
      await context.grantPermissions(["notifications"], { origin: other.origin });
      // The desktop is not part of the test: what the page gives to it is.
      await context.addInitScript(() => {
        globalThis.shownNotes = [];
        const given = globalThis.Notification;
        globalThis.Notification = class {
          static permission = "granted";
          static requestPermission = () => given.requestPermission();
          constructor(title, options) { globalThis.shownNotes.push({ title, ...options }); }
          close() {}
        };
      });
      await first.reload();
      await first.evaluate(() => { location.hash = "#/inbox"; });
      await first.getByLabel("Desktop notifications").check();
      // The browser is asked first, which takes a moment.
      await until("the setting is kept", () => first.evaluate(() => localStorage.getItem("bowline.setting.notify") === "on"));
      const [second, third] = [await context.newPage(), await context.newPage()];
      for (const tab of [second, third]) {
        await tab.bringToFront();
        await tab.goto(`${other.origin}/#/inbox`);
        await tab.waitForSelector("#live[data-state=live]");
      }
      const front = await context.newPage();
      await front.bringToFront();
      for (const tab of [first, second, third]) await until("the tab is hidden", () => isHidden(tab));
      const call = world.callAt(other, "forms__wipe");
      const notes = async () => (await Promise.all([first, second, third].map((tab) => tab.evaluate(() => globalThis.shownNotes)))).flat();
      await until("a note", async () => (await notes()).length > 0);
      await front.waitForTimeout(1000);
      const [note, ...more] = await notes();
      assert.deepEqual(more, []);
      // It names the configured server and the kind of question, and nothing that the server says.
      assert.match(note.title, /^forms: a call waits$/);
      assert.ok(!/wipe|Deletes/.test(JSON.stringify(note)), JSON.stringify(note));
      // A visible tab needs no note.
      await second.bringToFront();
      const deny = second.locator(".answer").getByRole("button", { name: "Deny" });
      await until("the button is ready", async () => (await deny.getAttribute("aria-disabled")) === "false");
      await deny.click();
      assert.notEqual((await call).code, 0);
    });
  });

  test("an_unfocused_tab_gives_no_consent", async () => {
    await browser(async ({ other, context, first }) => {
      const call = world.callAt(other, "forms__wipe");
      await first.evaluate(() => { location.hash = "#/inbox"; });
      const allow = first.locator(".answer").getByRole("button", { name: "Allow" });
      // In the focused tab they act; only then it is the focus that they miss.
      await until("the button is ready", async () => (await allow.getAttribute("aria-disabled")) === "false");
      const front = await context.newPage();
      await front.bringToFront();
      await until("the question is hidden", () => isHidden(first));
      await until("its buttons do not act", async () => (await allow.getAttribute("aria-disabled")) === "true");
      await front.waitForTimeout(1000);
      assert.equal(await allow.getAttribute("aria-disabled"), "true");
      await first.bringToFront();
      const deny = first.locator(".answer").getByRole("button", { name: "Deny" });
      await until("they act after a moment", async () => (await deny.getAttribute("aria-disabled")) === "false");
      await deny.click();
      assert.notEqual((await call).code, 0);
    });
  });

  test("it_works_offline", async () => {
    // A network of its own with nothing but this machine in it, for the program and the browser.
    const { output, code } = await world.run("unshare", ["-rn", "sh", "-c", `ip link set lo up && exec ${process.execPath} ${new URL("offline.mjs", import.meta.url).pathname} ${world.binary}`]);
    assert.equal(code, 0, output);
    assert.match(output, /a call was made offline/);
  });
}

// Starts the page: the shell, the views, and the states that concern all of them.
import { effect, scope, signal } from "./core/signal.js";
import { fill, h, icon } from "./core/dom.js";
import { act, forgetKey, grade, key, recall, remember } from "./core/api.js";
import { follow, go, place } from "./core/route.js";
import * as stream from "./core/stream.js";
import { inbox, loading, overview, problem, refreshOverview, start } from "./core/model.js";
import { home } from "./home/home.js";

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @type {Record<string, { title: string, fixed: boolean, load: () => Promise<() => Node> }>} */
const VIEWS = {
  home: { title: "Home", fixed: false, load: async () => home },
  explore: { title: "Explore", fixed: true, load: async () => (await import("./explore/explore.js")).explore },
  traffic: { title: "Traffic", fixed: true, load: async () => (await import("./traffic/traffic.js")).traffic },
  inbox: { title: "Inbox", fixed: true, load: async () => (await import("./inbox/inbox.js")).inboxView },
  rules: { title: "Rules", fixed: false, load: async () => (await import("./rules/rules.js")).rules },
  server: { title: "Server", fixed: false, load: async () => (await import("./server/server.js")).server },
};

const THEMES = /** @type {const} */ (["system", "light", "dark"]);

function applyTheme() {
  const theme = recall("theme");
  const root = document.documentElement;
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  else delete root.dataset.theme;
  const button = byId("theme");
  button.title = `Theme: ${theme ?? "system"}`;
  button.setAttribute("aria-label", `Theme: ${theme ?? "system"}`);
}

function nextTheme() {
  const now = /** @type {typeof THEMES[number]} */ (recall("theme") ?? "system");
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length] ?? "system";
  remember("theme", next === "system" ? null : next);
  applyTheme();
}

/** Only this is shown without a key. */
function noKey() {
  return h("div", { class: "blank" },
    h("svg", { class: "knot", "aria-hidden": "true" }, h("use", { href: "#i-knot" })),
    h("h2", null, "This browser is not connected"),
    h("p", null, "Open the link that ", h("code", null, "bowline up"), " printed, or run ", h("code", null, "bowline open"), "."));
}

/** The digits that the terminal shows beside its question about this browser. */
const digits = signal("");
const refusal = signal("");

/** Asks the person at the terminal whether this browser may act. */
async function requestControl() {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  digits.set(String(random % 10_000).padStart(4, "0"));
  refusal.set("");
  try {
    await act({ action: "ask_control", digits: digits.peek() });
    await refreshOverview();
  } catch (error) {
    const advice = error instanceof Error && "advice" in error && error.advice ? `. ${error.advice}` : "";
    refusal.set(`${error instanceof Error ? error.message : error}${advice}`);
  }
  digits.set("");
}

function askControl() {
  if (digits() !== "") return h("div", { class: "notice", role: "status" }, icon("user"), h("span", null, "Answer in the terminal of ", h("code", null, "bowline up"), ": it asks about the browser with the digits ", h("b", { class: "control-digits" }, digits())));
  return h("div", { class: "notice" }, icon("user"), h("span", null, "You can look. To run tools and answer questions, ask the person at the terminal of ", h("code", null, "bowline up"), "."),
    refusal() === "" ? null : h("span", { class: "error", role: "alert" }, refusal()),
    h("button", { type: "button", class: "button", onclick: requestControl }, "Ask for control"));
}

function notices() {
  effect(() => {
    const list = [];
    if (key() !== null) {
      if (stream.state() === "gone") {
        list.push(h("div", { class: "notice warn", role: "alert" }, icon("alert"), h("span", null, "bowline was restarted or has ended. Open the link that it printed, or run ", h("code", null, "bowline open"), ".")));
      } else if (overview() && grade() === "view") {
        list.push(overview()?.can_ask_control ? askControl() : h("div", { class: "notice" }, icon("user"), h("span", null, "You can look. To run tools and answer questions, open the link that ", h("code", null, "bowline up"), " printed in its terminal.")));
      }
      const error = problem();
      if (error) list.push(h("div", { class: "notice warn", role: "alert" }, icon("alert"), error));
    }
    fill(byId("notices"), list);
  });
}

function liveWord() {
  effect(() => {
    const state = stream.state();
    byId("live").dataset.state = state === "gone" ? "lost" : state;
    byId("live-word").textContent = { wait: "Connecting", live: "Live", lost: "Reconnecting…", gone: "Disconnected" }[state];
    byId("live").hidden = key() === null;
  });
  effect(() => {
    const count = inbox()?.waiting.length ?? 0;
    const badge = byId("waiting");
    badge.hidden = count === 0;
    badge.textContent = String(count);
    badge.setAttribute("aria-label", count === 1 ? "1 question waits" : `${count} questions wait`);
  });
  effect(() => {
    byId("loading").hidden = !loading();
  });
}

/** Shows the view of the present place. A view stays while only its details change. */
function views() {
  let shown = "";
  let end = () => {};
  effect(() => {
    const hasKey = key() !== null;
    const name = place().view;
    const view = Object.hasOwn(VIEWS, name) ? name : "home";
    const wanted = hasKey ? view : "none";
    byId("tabs").hidden = !hasKey;
    byId("search").hidden = !hasKey;
    for (const tab of document.querySelectorAll("#tabs a")) {
      const current = /** @type {HTMLElement} */ (tab).dataset.view === (view === "server" ? "home" : view);
      if (current) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    if (wanted === shown) return;
    shown = wanted;
    const main = byId("main");
    if (wanted === "none") {
      end();
      document.body.classList.remove("fixed");
      fill(main, noKey());
      firstViewShown();
      return;
    }
    const { title, fixed, load } = /** @type {typeof VIEWS[string]} */ (VIEWS[wanted]);
    document.title = `${title} · bowline`;
    load().then((render) => {
      if (shown !== wanted) return;
      end();
      const [node, dispose] = scope(render);
      end = dispose;
      document.body.classList.toggle("fixed", fixed);
      main.dataset.view = wanted;
      main.replaceChildren(node);
      firstViewShown();
    }, (error) => {
      shown = "";
      problem.set(`this part of the page did not load: ${error instanceof Error ? error.message : error}`);
    });
  });
}

let isShown = false;

/** What the first view does not need loads after it was painted. */
function firstViewShown() {
  if (isShown) return;
  isShown = true;
  performance.mark("first-view");
  requestAnimationFrame(() => setTimeout(later, 0));
}

/** Shortcuts and the palette. */
async function later() {
  const [keys, palette] = await Promise.all([import("./core/keys.js"), import("./core/palette.js")]);
  byId("search-key").textContent = `${keys.modifier} K`;
  byId("search").setAttribute("aria-label", `Search or run… ${keys.modifier} K`);
  keys.listen();
  if (key.peek() !== null) import("./inbox/notify.js").then((notify) => notify.start());
  keys.bind("mod+k", "Search or run", () => palette.open());
  keys.bind("/", "Find in this view", () => {
    const field = /** @type {HTMLElement | null} */ (document.querySelector("main [data-find]"));
    if (field) field.focus();
    else palette.open();
  });
  keys.bind("?", "Help and shortcuts", () => palette.help());
  for (const [letter, url, title] of [["h", "#/", "Home"], ["e", "#/explore", "Explore"], ["t", "#/traffic", "Traffic"], ["i", "#/inbox", "Inbox"], ["r", "#/rules", "Rules"]]) {
    keys.bind(`g ${letter}`, `Go to ${title}`, () => go(/** @type {string} */ (url)));
  }
  byId("search").onclick = () => palette.open();
  byId("help").onclick = () => palette.help();
}

/** `inspect` is a host of one server: it opens Explore. */
function firstView() {
  if (location.hash !== "" && location.hash !== "#/") return;
  const end = effect(() => {
    const known = overview();
    if (!known) return;
    if (known.mode === "inspect" && place.peek().view === "home") go("#/explore");
    // A folder has messages and no servers.
    if (known.mode === "folder" && place.peek().view === "home") go("#/traffic");
    queueMicrotask(() => end());
  });
}

/** Ends the session of this browser. */
export async function signOut() {
  try {
    await act({ action: "sign_out", all: false });
  } finally {
    forgetKey();
  }
}

applyTheme();
byId("theme").onclick = nextTheme;
follow();
notices();
liveWord();
views();
if (key.peek() !== null) {
  start();
  firstView();
}
addEventListener("storage", (event) => {
  if (event.key === "bowline.key") location.reload();
});

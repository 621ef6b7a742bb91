// Home: which servers are ready, one call to try, how to connect a client, and the latest calls.
import { cleanup, computed, effect, signal } from "../core/signal.js";
import { each, h, icon, show } from "../core/dom.js";
import { act, grade } from "../core/api.js";
import { format } from "../core/route.js";
import * as stream from "../core/stream.js";
import { hostNow, overview } from "../core/model.js";
import { count, duration, hour, hue, line, plural, told } from "../core/text.js";
import { ends, roots, version } from "../traffic/store.js";

/** @typedef {import("../api").ServerSummary} ServerSummary */

const WINDOW = 15 * 60 * 1000;
const BUCKETS = 45;

/** @type {Record<string, [string, string, string]>} */
const STATES = {
  ready: ["Ready", "ok", "check"],
  starting: ["Starting", "muted", "clock"],
  idle: ["Idle", "muted", "pause"],
  failed: ["Failed", "error", "cross"],
  invalid: ["Invalid", "error", "cross"],
  disabled: ["Disabled", "muted", "stop"],
  needs_approval: ["Needs approval", "person", "user"],
};

/**
 * @param {string} state
 * @param {string} [login] the command that logs in, if a login is missing
 */
export function stateWord(state, login) {
  const [word, className, name] = login ? ["Needs login", "person", "user"] : STATES[state] ?? [state, "muted", "help"];
  return h("span", { class: `status ${className}` }, icon(name), word);
}

/** Calls per server and time, from the rows of the buffer. */
const activity = computed(() => {
  version();
  const now = hostNow();
  /** @type {Map<string, { all: number[], failed: number[], times: number[], latest: import("../traffic/store.js").Row | null }>} */
  const servers = new Map();
  const place = (/** @type {string} */ name) => {
    let found = servers.get(name);
    if (!found) {
      found = { all: new Array(BUCKETS).fill(0), failed: new Array(BUCKETS).fill(0), times: [], latest: null };
      servers.set(name, found);
    }
    return found;
  };
  const total = place("");
  /** @param {import("../traffic/store.js").Row} row */
  const visit = (row) => {
    if (row.kind === "call" && row.leg === "server" && row.direction === "out" && isUse(row.method)) {
      const bucket = Math.floor((BUCKETS * (row.at - now + WINDOW)) / WINDOW);
      const failed = row.status === "failed" || row.status === "denied";
      for (const each of [place(row.server), total]) {
        if (row.took !== null) each.times.push(row.took);
        each.latest = row;
        if (bucket < 0 || bucket >= BUCKETS) continue;
        each.all[bucket] = (each.all[bucket] ?? 0) + 1;
        if (failed) each.failed[bucket] = (each.failed[bucket] ?? 0) + 1;
      }
    }
    for (const child of row.children) visit(child);
  };
  for (const row of roots) visit(row);
  for (const each of servers.values()) each.times.sort((a, b) => a - b);
  return servers;
});

/** @param {string} method */
function isUse(method) {
  return method === "tools/call" || method === "resources/read" || method === "prompts/get";
}

/**
 * Bars of calls by time.
 * @param {() => { all: number[], failed: number[] } | undefined} read
 * @param {string} label
 */
function sparkline(read, label) {
  return h("svg", { class: "spark", viewBox: `0 0 ${BUCKETS * 3} 18`, preserveAspectRatio: "none", role: "img", "aria-label": label }, () => {
    const data = read();
    const most = Math.max(1, ...(data?.all ?? []));
    return Array.from({ length: BUCKETS }, (_, index) => {
      const all = data?.all[index] ?? 0;
      const failed = data?.failed[index] ?? 0;
      if (all === 0) return h("rect", { class: "none", x: index * 3, y: 17, width: 2, height: 1 });
      const height = Math.max(3, Math.round((all / most) * 17));
      return h("rect", { class: failed > 0 ? "failed" : "some", x: index * 3, y: 18 - height, width: 2, height });
    });
  });
}

function summary() {
  const servers = () => (overview()?.servers ?? []).filter((server) => server.state !== "disabled");
  const ready = () => servers().filter((server) => server.state === "ready" || server.state === "idle").length;
  const p50 = () => {
    const times = activity().get("")?.times ?? [];
    return times.length === 0 ? null : (times[Math.ceil(times.length / 2) - 1] ?? null);
  };
  const calls = () => (overview()?.servers ?? []).reduce((sum, server) => sum + server.calls, 0);
  const failed = () => (overview()?.servers ?? []).reduce((sum, server) => sum + server.failed, 0);
  return h("div", { class: "summary" },
    h("h1", { class: "headline" }, h("span", { class: "big" }, () => `${ready()}`), () => ` of ${plural(servers().length, "server")} ready`),
    h("dl", { class: "facts" },
      h("div", null, h("dt", null, "Calls"), h("dd", null, () => count(calls()))),
      h("div", { class: () => (failed() > 0 ? "error" : "") }, h("dt", null, "Failed"), h("dd", null, () => count(failed()))),
      h("div", null, h("dt", null, "Median"), h("dd", null, () => (p50() === null ? "–" : duration(p50()))))),
    h("a", { class: "spark-link", href: "#/traffic" }, sparkline(() => activity().get(""), "Calls of the last 15 minutes"), h("span", { class: "small muted" }, "Last 15 minutes")));
}

/** @param {() => ServerSummary} server */
function row(server) {
  const name = server().name;
  const times = () => activity().get(name)?.times ?? [];
  const median = () => times()[Math.ceil(times().length / 2) - 1];
  const number = (/** @type {number | undefined} */ value) => (value === undefined ? "–" : count(value));
  const broken = () => server().state === "failed" || server().state === "invalid" || server().state === "needs_approval";
  const tools = () => server().tools;
  return h("tbody", { class: () => `hue-${hue(name)}${broken() ? " broken" : ""}${server().login ? " login" : ""}` },
    h("tr", null,
      h("th", { scope: "row" }, h("a", { href: format("server", [name]), class: "server-name" }, h("span", { class: "mark" }), h("span", { class: "ellipsis" }, line(name, 60)))),
      h("td", null, () => stateWord(server().state, server().login)),
      h("td", { class: "muted nowrap only-wide" }, () => server().revision ?? "–"),
      h("td", { class: "number only-wide" }, () => number(tools())),
      h("td", { class: "number only-wide" }, () => number(server().tokens)),
      h("td", { class: "number" }, () => count(server().calls)),
      h("td", { class: () => `number${server().failed > 0 ? " error" : ""}` }, () => count(server().failed)),
      h("td", { class: "number" }, () => (median() === undefined ? "–" : duration(median()))),
      h("td", { class: "activity only-wide" }, () => sparkline(() => activity().get(name), `Calls of ${name} in the last 15 minutes`))),
    show(() => broken() || server().reason, () =>
      h("tr", { class: "reason" }, h("td", { colspan: "9" }, h("div", { class: "reason-box" },
        h("div", { class: "reason-text", tabindex: "0", role: "group", "aria-label": "Reason" }, () => (server().state === "needs_approval" && !server().reason ? "Another person configured this server. Approve it in the terminal." : told(server().reason))),
        h("div", { class: "actions" },
          show(() => server().login, () => loginCommand(() => server().login ?? "")),
          show(() => server().controllable && server().state !== "needs_approval", () => actButton("Restart", "again", () => act({ action: "restart", server: name }))),
          h("a", { class: "button", href: format("server", [name]) }, icon("output"), "Output")))))));
}

/**
 * The command that logs in to a server. A login needs a browser of its own, so the terminal does it.
 * @param {() => string} command
 */
export function loginCommand(command) {
  return h("span", { class: "login-command" }, h("code", null, command), copyLater(command));
}

/**
 * A button for an action, disabled with a reason for a browser that can only look.
 * @param {string} label
 * @param {string} iconName
 * @param {() => Promise<unknown>} run
 * @param {string} [className]
 */
export function actButton(label, iconName, run, className = "button") {
  const busy = signal(false);
  const failure = signal("");
  const allowed = () => grade() === "control" && stream.state() !== "gone" && stream.state() !== "lost";
  return h("span", { class: "contents" },
    h("button", {
      type: "button", class: className,
      disabled: () => !allowed() || busy(),
      title: () => (grade() === "control" ? "" : "Allow this browser in the terminal of bowline up"),
      onclick: async () => {
        busy.set(true);
        failure.set("");
        try {
          await run();
        } catch (error) {
          failure.set(error instanceof Error ? error.message : String(error));
        }
        busy.set(false);
      },
    }, icon(iconName), label),
    show(failure, () => h("span", { class: "error small", role: "alert" }, failure)));
}

function servers() {
  return h("section", { "aria-label": "Servers" },
    h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Servers" },
      h("table", { class: "servers" },
        h("thead", null, h("tr", null,
          h("th", { scope: "col" }, "Server"), h("th", { scope: "col" }, "State"), h("th", { scope: "col", class: "only-wide" }, "Speaks"),
          h("th", { scope: "col", class: "number only-wide" }, "Tools"), h("th", { scope: "col", class: "number only-wide", title: "About how many tokens the tool definitions cost" }, "Tokens"),
          h("th", { scope: "col", class: "number" }, "Calls"), h("th", { scope: "col", class: "number" }, "Failed"), h("th", { scope: "col", class: "number" }, "Median"), h("th", { scope: "col", class: "only-wide" }, "Activity"))),
        each(() => overview()?.servers ?? [], (server) => server.name, row))));
}

function connect() {
  const chosen = signal(0);
  const hints = () => overview()?.connect ?? [];
  const clients = () => (overview()?.clients ?? []).filter((client) => client.name !== "page");
  return h("section", { class: "card", "aria-labelledby": "connect-title" },
    h("h2", { id: "connect-title" }, "Connect a client"),
    show(() => hints().length > 0, () => [
      h("div", { class: "segments wrap", role: "group", "aria-label": "Client" }, () => hints().map((hint, index) =>
        h("button", { type: "button", "aria-pressed": () => String(chosen() === index), onclick: () => chosen.set(index) }, hint.client))),
      h("div", { class: "copy-box" }, h("pre", { tabindex: "0", "aria-label": "Command or configuration" }, () => hints()[chosen()]?.text ?? ""), copyLater(() => hints()[chosen()]?.text ?? "")),
    ], () => h("p", { class: "muted" }, () => (grade() === "view" ? "A browser that only looks does not see how clients connect: it would see the token of the gateway." : "This host serves no gateway."))),
    h("p", { class: "client-state", role: "status" }, () => {
      const client = clients()[0];
      return client
        ? [h("span", { class: "status ok" }, icon("check"), h("span", null, `${line(client.name, 60)} connected at ${hour(client.since)}`)), client.calls > 0 ? h("span", { class: "muted" }, `, ${plural(client.calls, "call")}`) : ""]
        : h("span", { class: "status muted" }, h("span", { class: "waiting-dot" }), "Waiting for a client…");
    }));
}

/**
 * A button that copies; what it needs loads when it is pressed.
 * @param {() => string} text
 */
function copyLater(text) {
  const word = signal("Copy");
  return h("button", { type: "button", class: "button", onclick: async () => {
    const { copy, fail } = await import("../core/dialog.js");
    try {
      await copy(text());
      word.set("Copied");
      setTimeout(() => word.set("Copy"), 1500);
    } catch (error) {
      fail(error);
    }
  } }, icon("copy"), h("span", null, word));
}

/** The call to try. Its form and result come from Explore, which loads when they are needed. */
function tryCall() {
  const call = () => overview()?.try_call;
  const place = h("div", { class: "try" });
  let shown = "";
  effect(() => {
    const offer = call();
    const id = offer ? `${offer.server} ${offer.tool}` : "";
    if (!offer || id === shown) return;
    shown = id;
    // The servers are painted first.
    requestAnimationFrame(() => setTimeout(() => import("./try.js").then(
      ({ tryForm }) => place.replaceChildren(tryForm(offer)),
      // The gateway may have ended since the page was loaded.
      () => place.replaceChildren("The form could not be loaded. Reload the page."),
    ), 0));
  });
  return h("section", { class: "card", "aria-labelledby": "try-title" },
    h("h2", { id: "try-title" }, "Try a call"),
    show(call, () => place, () => h("p", { class: "muted" }, () => (overview()?.servers.length === 0
      ? "No server is configured. Add one to bowline.toml, or run bowline config import."
      : ["Choose a tool in ", h("a", { href: "#/explore" }, "Explore"), "."]))));
}

function latest() {
  const calls = () => {
    version();
    return roots.filter((row) => row.kind === "call" && row.leg === "client" && isUse(row.method)).slice(-8).reverse();
  };
  return h("section", { class: "latest", "aria-labelledby": "latest-title" },
    h("div", { class: "section-head" }, h("h2", { id: "latest-title" }, "Latest calls"), h("a", { href: "#/traffic" }, "All traffic ", icon("arrow"))),
    h("ul", { class: "call-list" }, each(calls, (row) => `${row.seq} ${row.status}`, (row) => {
      const call = row();
      return h("li", null, h("a", { href: format("traffic", [String(call.seq)]), class: `hue-${hue(call.server)}` },
        h("span", { class: "muted number" }, hour(call.at)), h("span", { class: "mark" }), h("span", { class: "ellipsis" }, h("b", null, line(call.name || call.method, 80)), " ", h("span", { class: "muted" }, line(ends(call)[0], 40))),
        rowStatus(call), h("span", { class: "number muted took" }, duration(call.took))));
    })),
    show(() => calls().length === 0, () => h("p", { class: "muted" }, "No calls yet.")));
}

/**
 * The status of a row: an icon and a word.
 * @param {import("../traffic/store.js").Row} row
 */
export function rowStatus(row) {
  const look = /** @type {Record<string, [string, string]>} */ ({
    running: ["muted", "clock"], done: ["ok", "check"], failed: ["error", "cross"], cancelled: ["muted", "stop"], denied: ["error", "stop"],
  })[row.status];
  if (!look) return h("span", { class: "status" }, row.word);
  return h("span", { class: `status ${look[0]}` }, icon(look[1]), row.word || "Running");
}

/** Renders the view. */
export function home() {
  const first = signal(sessionStorage.getItem("bowline.first-steps") === "on");
  const showFirst = () => first.set(true);
  addEventListener("bowline:first-steps", showFirst);
  cleanup(() => removeEventListener("bowline:first-steps", showFirst));
  const used = () => (overview()?.clients ?? []).some((client) => client.name !== "page" && client.calls > 0);
  const steps = () => first() || !used();
  return h("div", { class: "view" }, show(overview, () => h("div", { class: "page home" },
    summary(),
    servers(),
    show(steps, () => h("div", { class: "cards" }, tryCall(), connect())),
    show(() => used() || first(), latest))));
}

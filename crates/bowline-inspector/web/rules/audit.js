// The end of the audit log: filtered, newest first, with links to the calls that Traffic still has.
import { cleanup, computed, effect, signal } from "../core/signal.js";
import { fill, h, icon, show } from "../core/dom.js";
import { query } from "../core/api.js";
import { dialog, fail } from "../core/dialog.js";
import { jsonView } from "../core/json.js";
import { overview } from "../core/model.js";
import { format } from "../core/route.js";
import { hue, line } from "../core/text.js";
import { all, version } from "../traffic/store.js";

/** @typedef {import("../api").AuditLine} AuditLine */

/** Milliseconds by which a line may differ from its call: the log has times in whole milliseconds, and decides before it sends. */
const NEAR = 1500;
const EVENTS = ["decision", "call", "task", "pin", "refusal", "login", "page"];
/** @type {Record<string, [string, string]>} */
const LOOKS = { allow: ["ok", "check"], ok: ["ok", "check"], deny: ["error", "stop"], cancel: ["muted", "stop"], abandoned: ["muted", "stop"] };

/** Renders the tab. */
export function audit() {
  const table = h("tbody", null);
  const state = signal(/** @type {"loading" | "off" | "on"} */ ("loading"));
  const next = signal(/** @type {number | undefined} */ (undefined));
  const none = signal(false);
  let timer = 0;
  let asked = 0;
  let older = false;
  const load = async (/** @type {number} */ before = -1) => {
    asked += 1;
    const mine = asked;
    const given = { server: server.value, event: event.value, text: text.value.trim() };
    try {
      const page = await query({ query: "audit", limit: 100, ...(before >= 0 ? { before } : {}), ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== "")) });
      if (mine !== asked) return;
      state.set(page.is_on ? "on" : "off");
      next.set(page.next);
      older = before >= 0;
      const rows = auditRows(page.lines);
      if (before >= 0) table.append(...rows);
      else fill(table, rows);
      none.set(table.childElementCount === 0);
    } catch (error) {
      fail(error);
    }
  };
  const later = (/** @type {number} */ pause) => {
    clearTimeout(timer);
    timer = setTimeout(load, pause);
  };
  const text = h("input", { class: "input", type: "search", "aria-label": "Find in the audit log", placeholder: "Find in the audit log", autocomplete: "off", oninput: () => later(150) });
  const select = (/** @type {string} */ label, /** @type {string} */ every, /** @type {() => string[]} */ values) => h("select", { class: "input", "aria-label": label, onchange: () => load() },
    h("option", { value: "" }, every), () => values().map((value) => h("option", { value }, line(value, 60))));
  // The list is drawn again, and a choice lost, only if there are other servers.
  const names = computed(() => JSON.stringify((overview()?.servers ?? []).map((each) => each.name).sort()));
  const server = select("Server", "All servers", () => JSON.parse(names()));
  const event = select("Event", "All events", () => EVENTS);
  // The newest lines follow what happens, unless somebody reads older ones or points at them.
  effect(() => {
    version();
    if (!older && !table.matches(":hover, :focus-within")) later(1000);
  });
  cleanup(() => clearTimeout(timer));
  load();
  return h("section", { "aria-label": "Audit log" },
    show(() => state() === "off", () => h("div", { class: "blank" }, icon("output"), h("h2", null, "There is no audit log"), h("p", null, "Name a file in ", h("code", null, "[audit]"), " of the configuration."))),
    h("div", { class: "stack", hidden: () => state() !== "on" },
      h("div", { class: "audit-filter" }, text, server, event),
      h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Lines of the audit log" }, h("table", { class: "data framed audit" },
        h("thead", null, h("tr", null, ...["Time (UTC)", "Event", "Client", "Server", "What", "Outcome"].map((title) => h("th", { scope: "col" }, title)), h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "More")))), table)),
      show(none, () => h("p", { class: "muted" }, "No line matches.")),
      show(() => next() !== undefined, () => h("div", { class: "actions" }, h("button", { type: "button", class: "button", onclick: () => load(next.peek()) }, "Show older lines")))));
}

/**
 * @param {AuditLine} auditLine
 * @param {string} name
 */
function member({ entry }, name) {
  const value = entry !== null && typeof entry === "object" && Object.hasOwn(entry, name) ? /** @type {Record<string, unknown>} */ (entry)[name] : undefined;
  return value === undefined || value === null ? "" : line(typeof value === "string" ? value : JSON.stringify(value), 200);
}

/** @param {AuditLine[]} lines */
function auditRows(lines) {
  const calls = callsOf(lines);
  return lines.map((each) => {
    const of = (/** @type {string} */ name) => member(each, name);
    const outcome = of("decision") || of("outcome");
    const [look, name] = LOOKS[outcome] ?? (outcome === "" ? ["muted", ""] : ["error", "cross"]);
    const call = calls.get(each);
    return h("tr", { class: of("server") ? `hue-${hue(of("server"))}` : "" },
      h("td", { class: "nowrap muted" }, of("time").replace("T", " ").replace(/\.\d+Z$/, "")), h("td", null, of("event")), h("td", null, of("client")),
      h("td", { class: "nowrap" }, of("server") ? [h("span", { class: "mark" }), " ", of("server")] : null),
      h("td", null, h("span", { class: "muted" }, of("method")), of("name") ? [" ", h("b", null, of("name"))] : null),
      h("td", null, outcome ? h("span", { class: `status ${look}` }, name ? icon(name) : null, outcome) : null, of("reason") ? h("div", { class: "muted small" }, of("reason")) : null),
      h("td", { class: "nowrap audit-more" },
        call === undefined ? null : h("a", { class: "button quiet", href: format("traffic", [String(call)]), title: "See it in Traffic" }, icon("traffic"), h("span", { class: "visually-hidden" }, "See it in Traffic")),
        h("button", { type: "button", class: "button quiet", title: "The whole line", onclick: () => { dialog("Line of the audit log", () => jsonView(JSON.stringify(each.entry, null, 2), { label: "Line of the audit log" })); } }, icon("dots"), h("span", { class: "visually-hidden" }, "The whole line"))));
  });
}

/**
 * Finds the calls of lines: the nearest in time of the same server and name.
 * @param {AuditLine[]} lines
 * @returns {Map<AuditLine, number>}
 */
function callsOf(lines) {
  /** @type {Map<string, AuditLine[]>} */
  const wanted = new Map();
  for (const each of lines) {
    if (!["decision", "call", "task"].includes(member(each, "event"))) continue;
    const id = JSON.stringify([member(each, "server"), member(each, "name")]);
    wanted.set(id, [...(wanted.get(id) ?? []), each]);
  }
  /** @type {Map<AuditLine, { seq: number, away: number }>} */
  const found = new Map();
  if (wanted.size === 0) return new Map();
  for (const row of all()) {
    const isCall = row.kind === "call" && row.leg === "server" && row.direction === "out";
    // A call that was denied never reached its server.
    if (!isCall && (row.kind !== "policy" || row.status !== "denied")) continue;
    const name = isCall ? row.name : (row.parent?.name ?? "").replace(`${row.peer}__`, "");
    for (const each of wanted.get(JSON.stringify([row.peer, name])) ?? []) {
      const at = Date.parse(member(each, "time"));
      const ended = member(each, "event") === "call";
      const away = Math.abs((ended || !isCall ? row.at + (row.took ?? 0) : row.at) - at);
      const best = found.get(each);
      if (away <= NEAR && (!best || away < best.away)) found.set(each, { seq: row.seq, away });
    }
  }
  return new Map([...found].map(([each, { seq }]) => [each, seq]));
}

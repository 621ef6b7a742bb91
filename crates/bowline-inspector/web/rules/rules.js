// Rules: what the policy says, what it would decide, accepted definitions, and the audit log.
import { effect, signal } from "../core/signal.js";
import { fill, h, icon, show } from "../core/dom.js";
import { act, query } from "../core/api.js";
import { parseExact } from "../core/json.js";
import { entries, needEntries } from "../core/model.js";
import { fail, toast } from "../core/dialog.js";
import { hue, line, plural, told } from "../core/text.js";
import { actButton } from "../home/home.js";

/** @type {Record<string, [string, string]>} */
const EFFECTS = { allow: ["ok", "check"], ask: ["person", "user"], deny: ["error", "stop"] };
/** @type {Record<string, string>} */
const CONSENT = { ask: "you are asked", client: "the call is allowed: the client asks its own user", deny: "the call is denied" };
/** @type {Record<string, string>} */
const BY = { rule: "a rule decides", default: "no rule matches", remembered: "an earlier answer decides", check: "a check comes first" };

/** @param {string} effect */
function effectWord(effect) {
  const [className, name] = EFFECTS[effect] ?? ["muted", "help"];
  return h("span", { class: `status ${className}` }, icon(name), effect);
}

/** Renders the view. */
export function rules() {
  needEntries();
  const decided = signal(/** @type {import("../api").Decided | null} */ (null));
  return h("div", { class: "view" }, h("div", { class: "page rules-page" },
    h("h1", null, "Rules"), ruleList(decided), whatIf(decided), pins(), audit()));
}

/** @param {() => import("../api").Decided | null} decided */
function ruleList(decided) {
  const list = signal(/** @type {import("../api").Rules | null} */ (null));
  const problem = signal("");
  query({ query: "rules" }).then((reply) => list.set(reply), (error) => problem.set(error.message));
  const item = (/** @type {import("../api").RuleView} */ rule, /** @type {number} */ index) => h("li", { class: () => (decided()?.rule === index ? "decides" : ""), "aria-current": () => (decided()?.rule === index ? "true" : null) },
    h("span", { class: "number" }, String(index + 1)), effectWord(rule.effect), h("code", null, line(rule.text, 300)));
  return h("section", { "aria-label": "Rules" },
    show(problem, () => h("div", { class: "callout error" }, icon("alert"), h("div", null, problem))),
    show(list, () => {
      const { rules: all, unasked, consent } = /** @type {import("../api").Rules} */ (list());
      return h("div", { class: "stack" },
        h("p", { class: "muted" }, all.length === 0 ? "There are no rules." : "The first rule that matches decides.", ` If no rule matches, ${CONSENT[consent] ?? consent}.`),
        all.length === 0 ? null : h("ol", { class: "rule-list" }, ...all.map(item)),
        unasked.length === 0 ? null : h("p", { class: "muted" }, `Allowed without asking by the command line: ${unasked.map((rule) => line(rule.text, 100)).join("; ")}`));
    }));
}

/**
 * What would be decided about a call. Nothing runs, and nobody is asked.
 * @param {import("../core/signal.js").Signal<import("../api").Decided | null>} decided
 */
function whatIf(decided) {
  const server = signal("");
  const tool = signal("");
  const problem = signal("");
  const groups = () => (entries()?.servers ?? []).filter((group) => group.items.some((item) => item.kind === "tool"));
  const tools = () => (groups().find((group) => group.server === server())?.items ?? []).filter((item) => item.kind === "tool");
  effect(() => {
    if (!groups().some((group) => group.server === server())) server.set(groups()[0]?.server ?? "");
  });
  effect(() => {
    if (!tools().some((item) => item.name === tool())) tool.set(tools()[0]?.name ?? "");
  });
  const argumentsArea = h("textarea", { id: "what-if-arguments", class: "input code", rows: "3", placeholder: "{ }" });
  const client = h("input", { id: "what-if-client", class: "input", autocomplete: "off", placeholder: "any" });
  const choice = (/** @type {string} */ id, /** @type {string} */ label, /** @type {() => { value: string, text: string }[]} */ options, /** @type {import("../core/signal.js").Signal<string>} */ chosen) => h("div", { class: "field" }, h("label", { for: id }, label),
    h("select", { id, class: "input", onchange: (/** @type {Event} */ event) => chosen.set(/** @type {HTMLSelectElement} */ (event.target).value) }, () => options().map((option) => h("option", { value: option.value, selected: option.value === chosen() }, option.text))));
  const ask = async () => {
    problem.set("");
    decided.set(null);
    const text = argumentsArea.value.trim();
    if (text !== "" && parseExact(text) === undefined) {
      problem.set("The arguments are not JSON yet");
      return;
    }
    const body = JSON.stringify({ query: "decide", server: server.peek(), kind: "tool", name: tool.peek(), ...(client.value.trim() ? { client: client.value.trim() } : {}) });
    try {
      decided.set(await query(text === "" ? body : `${body.slice(0, -1)},"arguments":${text}}`));
    } catch (error) {
      problem.set(error instanceof Error ? error.message : String(error));
    }
  };
  return h("section", { class: "card", "aria-labelledby": "what-if-title" },
    h("h2", { id: "what-if-title" }, "What would happen"),
    h("form", { class: "what-if", onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      ask();
    } },
      choice("what-if-server", "Server", () => groups().map((group) => ({ value: group.server, text: line(group.server, 60) })), server),
      choice("what-if-tool", "Tool", () => tools().map((item) => ({ value: item.name, text: line(item.label.text, 80) })), tool),
      h("div", { class: "field" }, h("label", { for: "what-if-client" }, "Client"), client),
      h("div", { class: "field whole" }, h("label", { for: "what-if-arguments" }, "Arguments"), argumentsArea),
      h("div", { class: "actions whole" }, h("button", { type: "submit", class: "button primary", disabled: () => tool() === "" }, icon("help"), "Decide"), h("span", { class: "muted small" }, "Nothing runs, and nobody is asked."))),
    show(problem, () => h("p", { class: "problem", role: "alert" }, icon("alert"), problem)),
    h("div", { role: "status" }, () => {
      const now = decided();
      return now && h("div", { class: "stack what-if-answer" }, h("p", null, effectWord(now.effect), h("span", { class: "muted" }, ` ${BY[now.by] ?? now.by}`)), h("p", null, line(now.reason, 500)),
        now.pin === "changed" ? h("p", { class: "status warn" }, icon("alert"), "Its definition changed since it was accepted.") : null);
    }));
}

function pins() {
  const list = signal(/** @type {import("../api").PinsView | null} */ (null));
  const load = () => query({ query: "pins" }).then((reply) => list.set(reply), fail);
  effect(() => {
    entries();
    load();
  });
  /** @param {string} server @param {import("../api").ToolPinView} tool */
  const changed = (server, tool) => h("li", { class: `hue-${hue(server)}` }, h("span", { class: "mark" }), h("b", null, `${line(server, 40)} / `, ...told(tool.label)), h("span", { class: "status warn" }, icon("alert"), tool.state),
    h("span", { class: "spring" }),
    tool.state === "changed" && tool.digest ? actButton("Accept as shown", "check", async () => {
      await act({ action: "accept_pin", server, tool: tool.name, digest: tool.digest });
      toast("Accepted");
      await load();
    }) : null,
    tool.diff.length === 0 ? null : h("pre", { class: "diff whole", tabindex: "0", role: "region", "aria-label": "What changed" }, ...tool.diff.map((each) => h("span", { class: `diff-${each.change}` }, each.change === "added" ? "+ " : each.change === "removed" ? "- " : "  ", ...told(each.text), "\n"))));
  return h("section", { "aria-labelledby": "pins-title" }, h("h2", { id: "pins-title" }, "Accepted definitions"), () => {
    const all = (list()?.servers ?? []).flatMap((group) => group.tools.map((tool) => ({ server: group.server, tool })));
    const open = all.filter(({ tool }) => tool.state === "changed" || tool.state === "removed");
    const fine = all.filter(({ tool }) => tool.state === "same").length;
    return [h("p", { class: "muted" }, all.length === 0 ? "A definition is accepted when its tool is called for the first time." : `${plural(fine, "definition")} as accepted, ${open.length} changed or removed.`),
      open.length === 0 ? null : h("ul", { class: "rule-list" }, ...open.map(({ server, tool }) => changed(server, tool)))];
  });
}

function audit() {
  const table = h("tbody", null);
  const state = signal(/** @type {"loading" | "off" | "on"} */ ("loading"));
  const next = signal(/** @type {number | undefined} */ (undefined));
  const text = h("input", { class: "input", type: "search", "aria-label": "Find in the audit log", placeholder: "Find in the audit log", autocomplete: "off" });
  let timer = 0;
  let asked = 0;
  const load = async (/** @type {number} */ before = -1) => {
    asked += 1;
    const mine = asked;
    try {
      const page = await query({ query: "audit", limit: 100, ...(before >= 0 ? { before } : {}), ...(text.value.trim() ? { text: text.value.trim() } : {}) });
      if (mine !== asked) return;
      state.set(page.is_on ? "on" : "off");
      next.set(page.next);
      const rows = page.lines.map(auditRow);
      if (before >= 0) table.append(...rows);
      else fill(table, rows);
    } catch (error) {
      fail(error);
    }
  };
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, 150);
  });
  load();
  return h("section", { "aria-labelledby": "audit-title" }, h("h2", { id: "audit-title" }, "Audit log"),
    show(() => state() === "off", () => h("p", { class: "muted" }, "There is none. Name a file in ", h("code", null, "[audit]"), " of the configuration.")),
    show(() => state() === "on", () => h("div", { class: "stack" }, text,
      h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Audit log" }, h("table", { class: "data audit" }, h("thead", null, h("tr", null, ...["Time (UTC)", "Event", "Client", "Server", "What", "Outcome"].map((title) => h("th", { scope: "col" }, title)))), table)),
      show(() => next() !== undefined, () => h("div", { class: "actions" }, h("button", { type: "button", class: "button", onclick: () => load(next.peek()) }, "Show older lines"))))));
}

/** @param {import("../api").AuditLine} auditLine */
function auditRow({ entry }) {
  const of = (/** @type {string} */ name) => {
    const value = entry !== null && typeof entry === "object" && Object.hasOwn(entry, name) ? /** @type {Record<string, unknown>} */ (entry)[name] : undefined;
    return value === undefined || value === null ? "" : line(typeof value === "string" ? value : JSON.stringify(value), 200);
  };
  return h("tr", null, h("td", { class: "nowrap muted" }, of("time").replace("T", " ").replace(/\.\d+Z$/, "")), h("td", null, of("event")), h("td", null, of("client")), h("td", null, of("server")), h("td", null, [of("method"), of("name")].filter(Boolean).join(" ")), h("td", null, [of("decision") || of("outcome"), of("reason")].filter(Boolean).join(": ")));
}

// Rules: what the policy says and would decide, accepted definitions, remembered answers, and the audit log.
import { cleanup, computed, effect, scope, signal } from "../core/signal.js";
import { fill, h, icon, show } from "../core/dom.js";
import { query } from "../core/api.js";
import { segmentTabs } from "../core/dialog.js";
import { parseExact } from "../core/json.js";
import { entries, needEntries } from "../core/model.js";
import { format, go, place } from "../core/route.js";
import { line } from "../core/text.js";
import { answers } from "./answers.js";
import { audit } from "./audit.js";
import { definitions } from "./definitions.js";

/** @type {Record<string, [string, string]>} */
const EFFECTS = { allow: ["ok", "check"], ask: ["person", "user"], deny: ["error", "stop"] };
/** @type {Record<string, string>} */
const CONSENT = { ask: "you are asked", client: "the call is allowed: the client asks its own user", deny: "the call is denied" };
/** @type {Record<string, string>} */
const BY = { rule: "a rule decides", default: "no rule matches", remembered: "an earlier answer decides", check: "a check comes first" };

const TABS = [{ id: "rules", label: "Rules" }, { id: "definitions", label: "Definitions" }, { id: "answers", label: "Answers" }, { id: "audit", label: "Audit log" }];

/** @param {string} effect */
export function effectWord(effect) {
  const [className, name] = EFFECTS[effect] ?? ["muted", "help"];
  return h("span", { class: `status ${className}` }, icon(name), effect);
}

/** Renders the view. */
export function rules() {
  needEntries();
  const tab = computed(() => {
    const [id = "rules"] = place().parts;
    return TABS.some((each) => each.id === id) ? id : "rules";
  });
  const body = h("div", { class: "rules-body" });
  let end = () => {};
  cleanup(() => end());
  effect(() => {
    const id = tab();
    end();
    const [node, dispose] = scope(() => (id === "definitions" ? definitions() : id === "answers" ? answers() : id === "audit" ? audit() : policy()));
    end = dispose;
    fill(body, node);
  });
  return h("div", { class: "view" }, h("div", { class: "page rules-page" },
    h("div", { class: "rules-head" }, h("h1", null, "Rules"), segmentTabs("Rules", () => TABS, tab, (id) => go(format("rules", id === "rules" ? [] : [id])))),
    body));
}

function policy() {
  const decided = signal(/** @type {import("../api").Decided | null} */ (null));
  return h("div", { class: "contents" }, ruleList(decided), whatIf(decided));
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

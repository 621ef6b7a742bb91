// Explore: everything that the servers offer in one list, the form of one item, and its latest result.
import { cleanup, computed, effect, scope, signal } from "../core/signal.js";
import { fill, h, icon, show } from "../core/dom.js";
import { act, query } from "../core/api.js";
import { format, place } from "../core/route.js";
import { entries, needEntries, overview } from "../core/model.js";
import { actButton } from "../home/home.js";
import { copyButton } from "../core/dialog.js";
import { hue, line, plural, told } from "../core/text.js";
import { Exact, stringifyExact } from "../core/json.js";
import { entryList } from "./list.js";
import { callForm } from "./form.js";
import { resultView } from "./result.js";

/** @typedef {import("../api").Entry} Entry */
/** @typedef {import("../api").ItemKind} ItemKind */
/** @typedef {{ server: string, entry: Entry }} Item */
/** @typedef {{ value: any, meta: string, timeout: string, calls: { call: number, at: number, value: any }[] }} Memory */

/** What was typed and called, until the page is closed. URLs carry no arguments. @type {Map<string, Memory>} */
const memories = new Map();

/**
 * @param {string} server
 * @param {string} kind
 * @param {string} name
 */
export function memoryOf(server, kind, name) {
  const id = JSON.stringify([server, kind, name]);
  let memory = memories.get(id);
  if (!memory) {
    memory = { value: undefined, meta: "", timeout: "", calls: [] };
    memories.set(id, memory);
  }
  return memory;
}

/**
 * Sends the request of an item and returns the call.
 * @param {string} server
 * @param {ItemKind} kind
 * @param {string} name
 * @param {any} value
 * @param {{ meta?: string, timeout?: string, revision?: string }} [options]
 * @returns {Promise<number>}
 */
export async function send(server, kind, name, value, options = {}) {
  const [method, params] = request(kind, name, value);
  // Arguments are spliced as text, so that long numbers stay exact.
  const body = stringifyExact({ action: "send", server, method, params, meta: undefined, timeout: options.timeout ? new Exact(options.timeout) : undefined, revision: options.revision });
  const meta = options.meta?.trim() ? `,"meta":${options.meta}` : "";
  const reply = await act(`${body.slice(0, -1)}${meta}}`);
  return reply.call;
}

/**
 * @param {ItemKind} kind
 * @param {string} name
 * @param {any} value
 * @returns {[string, any]}
 */
function request(kind, name, value) {
  if (kind === "prompt") return ["prompts/get", { name, arguments: value }];
  if (kind === "resource") return ["resources/read", { uri: name }];
  if (kind === "template") return ["resources/read", { uri: expand(name, value ?? {}) }];
  return ["tools/call", { name, arguments: value }];
}

/**
 * Fills in a URI template (RFC 6570): simple, reserved, fragment, label, path, parameter and query expansion.
 * @param {string} template
 * @param {Record<string, any>} values
 */
export function expand(template, values) {
  return template.replace(/\{([+#./;?&]?)([^{}]+)\}/g, (_, operator, list) => {
    const named = operator === ";" || operator === "?" || operator === "&";
    const separator = { "": ",", "+": ",", "#": ",", ".": ".", "/": "/", ";": ";", "?": "&", "&": "&" }[/** @type {string} */ (operator)] ?? ",";
    const parts = String(list).split(",").flatMap((spec) => {
      const name = spec.replace(/(\*|:\d+)$/, "");
      const raw = Object.hasOwn(values, name) ? values[name] : undefined;
      if (raw === undefined || raw === null || raw === "") return [];
      const cut = /:(\d+)$/.exec(spec);
      const text = cut ? String(raw).slice(0, Number(cut[1])) : String(raw);
      const encoded = operator === "+" || operator === "#" ? encodeURI(text) : encodeURIComponent(text);
      return [named ? `${name}=${encoded}` : encoded];
    });
    if (parts.length === 0) return "";
    return (operator === "" || operator === "+" ? "" : operator) + parts.join(separator);
  });
}

/** The words of hints, with their look. @type {Record<string, string>} */
const HINTS = { destructive: "error", "read-only": "ok" };

/** @param {string[]} hints */
export function hintTags(hints) {
  return hints.map((hint) => h("span", { class: `tag ${HINTS[hint] ?? ""}` }, hint));
}

/**
 * @param {Item} item
 * @returns {Node}
 */
function detail({ server, entry }) {
  const memory = memoryOf(server, entry.kind, entry.name);
  const call = signal(/** @type {number | null} */ (memory.calls.at(-1)?.call ?? null));
  const place = h("div", { class: "form-place" });
  const problem = signal("");
  let end = () => {};
  let ended = false;
  cleanup(() => {
    ended = true;
    end();
  });
  query({ query: "form", server, kind: entry.kind, name: entry.name }).then(
    (plan) => {
      if (ended) return;
      const [form, dispose] = scope(() => callForm({ server, entry, plan, memory, call }));
      end = dispose;
      place.replaceChildren(form);
    },
    (error) => problem.set(error instanceof Error ? error.message : String(error)),
  );
  const address = entry.kind === "resource" || entry.kind === "template";
  return h("div", { class: `contents hue-${hue(server)}` },
    h("section", { class: "pane form-pane", "aria-label": "Call" },
      h("div", { class: "item-head" },
        h("a", { class: "button quiet only-narrow", href: "#/explore" }, icon("back"), "All"),
        h("h1", { class: "item-name" }, h("span", { class: "mark" }), h("span", { class: "muted" }, `${line(server, 60)} / `), ...told(entry.label)),
        h("div", { class: "tags" }, h("span", { class: "tag" }, entry.kind), ...hintTags(entry.hints), entry.has_output_schema ? h("span", { class: "tag" }, "typed result") : null)),
      entry.title && entry.title.text !== entry.label.text ? h("p", { class: "item-title" }, ...told(entry.title)) : null,
      entry.description ? h("div", { class: "description", tabindex: "0", role: "group", "aria-label": "Description" }, ...told(entry.description)) : null,
      h("details", { class: "item-details" }, h("summary", null, "Details"),
        h("dl", { class: "pairs" },
          h("dt", null, "Name at the gateway"), h("dd", null, h("code", null, line(entry.gateway_name, 300))),
          address ? [h("dt", null, "URI"), h("dd", null, h("code", null, ...told(entry.label)))] : null,
          entry.mime ? [h("dt", null, "Type"), h("dd", null, ...told(entry.mime))] : null,
          h("dt", null, "Definition"), h("dd", null, `about ${plural(entry.tokens, "token")}`))),
      show(problem, () => h("div", { class: "callout error" }, icon("alert"), h("div", null, problem))),
      place),
    h("section", { class: "pane result-pane", "aria-label": "Result" }, resultView({ server, call })));
}

/** Renders the view. */
export function explore() {
  needEntries();
  const chosen = computed(() => {
    const [server = "", kind = "", name = ""] = place().parts;
    const group = entries()?.servers.find((each) => each.server === server);
    const entry = group?.items.find((each) => each.kind === kind && each.name === name);
    return entry ? { server, entry } : null;
  });
  const id = computed(() => {
    const item = chosen();
    return item ? JSON.stringify([item.server, item.entry.kind, item.entry.name]) : "";
  });
  const content = h("div", { class: "explore-detail" });
  let end = () => {};
  cleanup(() => end());
  effect(() => {
    const now = id();
    const item = chosen.peek();
    end();
    end = () => {};
    if (!item || now === "") {
      const missing = place().parts.length > 0 && entries();
      const [server = ""] = place().parts;
      if (missing && overview()?.servers.some((each) => each.name === server && each.state === "idle")) {
        fill(content, h("div", { class: "blank" }, icon("plug"), h("h2", null, `${line(server, 60)} is not running`), h("p", null, "It starts when it is needed."), h("div", { class: "actions" }, actButton("Start", "run", () => act({ action: "start", server }), "button primary"))));
        return;
      }
      fill(content, h("div", { class: "blank" }, icon("explore"),
        h("h2", null, missing ? "This item is not offered any more" : "Choose a tool, resource or prompt"),
        h("p", null, missing ? "The server may have stopped, or a rule hides it." : "Its form appears here. Nothing runs until you press Run.")));
      return;
    }
    const [node, dispose] = scope(() => detail(item));
    end = dispose;
    fill(content, node);
  });
  return h("div", { class: () => `view explore${place().parts.length > 0 ? " has-item" : ""}` }, entryList(chosen), content);
}

/**
 * The address of an item in Explore.
 * @param {string} server
 * @param {string} kind
 * @param {string} name
 */
export function itemUrl(server, kind, name) {
  return format("explore", [server, kind, name]);
}

/**
 * The command that makes a call, as text to paste.
 * @param {() => number | null} call
 */
export function copyCommand(call) {
  return show(call, () => copyButton(async () => (await query({ query: "copy", seq: call(), as: "command" })).text, "Copy command", "button quiet"));
}

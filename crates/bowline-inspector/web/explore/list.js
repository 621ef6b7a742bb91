// The list of Explore: tools, resources and prompts, grouped by server, with a field to find them.
import { computed, effect, signal } from "../core/signal.js";
import { each, h, icon, show } from "../core/dom.js";
import { format } from "../core/route.js";
import { act } from "../core/api.js";
import { entries, overview } from "../core/model.js";
import { actButton } from "../home/home.js";
import { hue, line, plural, told } from "../core/text.js";
import { isField } from "../core/keys.js";

/** @typedef {import("../api").Entry} Entry */
/** @typedef {"tool" | "resource" | "prompt"} Group */

/** Items of one server that are drawn before the field has to be used. */
const MAX_ITEMS = 500;

/** @param {Entry} entry @returns {Group} */
const groupOf = (entry) => (entry.kind === "tool" ? "tool" : entry.kind === "prompt" ? "prompt" : "resource");

/**
 * @param {() => { server: string, entry: Entry } | null} chosen
 */
export function entryList(chosen) {
  const text = signal("");
  const kinds = signal(/** @type {Set<Group>} */ (new Set()));
  const counts = computed(() => {
    const result = { tool: 0, resource: 0, prompt: 0 };
    for (const group of entries()?.servers ?? []) for (const item of group.items) result[groupOf(item)] += 1;
    return result;
  });
  const groups = computed(() => {
    const words = text().toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = kinds();
    return (entries()?.servers ?? [])
      .map((group) => ({
        ...group,
        items: group.items.filter((item) => {
          if (wanted.size > 0 && !wanted.has(groupOf(item))) return false;
          const haystack = `${group.server} ${item.name} ${item.title?.text ?? ""} ${item.description?.text ?? ""}`.toLowerCase();
          return words.every((word) => haystack.includes(word));
        }),
      }))
      .filter((group) => group.items.length > 0 || (words.length === 0 && wanted.size === 0));
  });
  const list = h("div", { class: "entries", role: "navigation", "aria-label": "Tools, resources and prompts" });
  const found = computed(() => groups().reduce((sum, group) => sum + group.items.length, 0));
  list.append(each(groups, (group) => group.server, (group) => {
    const name = group().server;
    return h("section", { class: `hue-${hue(name)}`, "aria-label": name },
      h("h2", { class: "entry-server" }, h("span", { class: "mark" }), h("span", { class: "ellipsis" }, line(name, 60)), h("span", { class: "muted small number" }, () => String(group().items.length))),
      h("ul", null, each(() => group().items.slice(0, MAX_ITEMS), (item) => `${item.kind} ${item.name}`, (item) => entryRow(name, item, chosen))),
      show(() => group().items.length > MAX_ITEMS, () => h("p", { class: "entry-note" }, () => `${plural(group().items.length - MAX_ITEMS, "more item")}: use the field above`)),
      show(() => group().items.length === 0 && overview()?.servers.some((server) => server.name === name && server.state === "idle"), () => h("p", { class: "entry-note" }, "It starts when it is needed. ", actButton("Start", "run", () => act({ action: "start", server: name }), "button quiet"))),
      show(() => group().hidden > 0, () => h("p", { class: "entry-note" }, () => `Hidden by rules: ${group().hidden}`)),
      show(() => group().problem, () => h("p", { class: "entry-note error" }, icon("alert"), () => told(group().problem))));
  }));
  list.append(h("div", { class: "contents" }, show(() => entries() && found() === 0 && (text() !== "" || kinds().size > 0), () =>
    h("div", { class: "blank small-blank" }, h("p", null, "Nothing matches"), h("button", { type: "button", class: "button", onclick: () => {
      text.set("");
      kinds.set(new Set());
    } }, "Show everything")))));
  moveWithKeys(list);

  /** @param {Group} kind @param {string} label */
  const chip = (kind, label) => h("button", {
    type: "button", "aria-pressed": () => String(kinds().has(kind)),
    onclick: () => kinds.update((set) => {
      const next = new Set(set);
      if (!next.delete(kind)) next.add(kind);
      return next;
    }),
  }, () => `${label} ${counts()[kind]}`);
  return h("aside", { class: "entry-pane", "aria-label": "Items" },
    h("div", { class: "entry-find" },
      h("div", { class: "find" }, icon("search"),
        h("input", { type: "search", class: "input", "data-find": true, "aria-label": "Find", autocomplete: "off", placeholder: () => `Find ${plural(counts().tool, "tool")}, ${plural(counts().resource, "resource")}, ${plural(counts().prompt, "prompt")}`,
          value: () => text(), oninput: (/** @type {Event} */ event) => text.set(/** @type {HTMLInputElement} */ (event.target).value) })),
      h("div", { class: "segments", role: "group", "aria-label": "Kinds" }, chip("tool", "Tools"), chip("resource", "Resources"), chip("prompt", "Prompts"))),
    list);
}

/**
 * @param {string} server
 * @param {() => Entry} item
 * @param {() => { server: string, entry: Entry } | null} chosen
 */
function entryRow(server, item, chosen) {
  const entry = item();
  const isChosen = () => {
    const now = chosen();
    return now !== null && now.server === server && now.entry.kind === entry.kind && now.entry.name === entry.name;
  };
  const hint = entry.hints.includes("destructive") ? "destructive" : entry.hints.includes("read-only") ? "read-only" : entry.kind === "tool" ? "" : entry.kind;
  const link = h("a", {
    class: "entry", href: format("explore", [server, entry.kind, entry.name]), title: line(entry.title?.text ?? entry.name, 200),
    "aria-current": () => (isChosen() ? "true" : null), tabindex: () => (isChosen() ? "0" : "-1"),
  }, icon(entry.kind), h("span", { class: "ellipsis" }, line(entry.label.text, 120)), h("span", { class: `entry-hint${hint === "destructive" ? " error" : ""}` }, hint));
  effect(() => {
    if (isChosen()) requestAnimationFrame(() => link.scrollIntoView({ block: "nearest" }));
  });
  return h("li", null, link);
}

/** @param {HTMLElement} list */
function moveWithKeys(list) {
  const links = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll("a.entry")]);
  list.addEventListener("keydown", (event) => {
    if (isField(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = links();
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    all[Math.max(0, Math.min(all.length - 1, next))]?.focus();
  });
  // One item of the list is always reachable with Tab.
  const first = () => {
    const all = links();
    if (all.length > 0 && !all.some((link) => link.tabIndex === 0)) /** @type {HTMLElement} */ (all[0]).tabIndex = 0;
  };
  const observer = new MutationObserver(first);
  observer.observe(list, { childList: true, subtree: true });
  first();
}

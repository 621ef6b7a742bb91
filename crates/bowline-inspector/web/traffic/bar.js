// The bars of Traffic: filter, statistics of the filtered rows, footer, and the line between list and detail.
import { signal } from "../core/signal.js";
import { each, h, icon, show } from "../core/dom.js";
import { act, grade, recall, remember } from "../core/api.js";
import { format } from "../core/route.js";
import { overview } from "../core/model.js";
import { fail } from "../core/dialog.js";
import { bytes, clock, count, duration, hour, line, plural } from "../core/text.js";
import { complete, parse, strictest, without } from "./filter.js";
import { histogram, summarize, timeline } from "./stats.js";
import { all, roots, total, version } from "./store.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {"calls" | "notices" | "logs" | "output"} Group */

export const GROUPS = /** @type {const} */ ([["calls", "Calls"], ["notices", "Notices"], ["logs", "Logs"], ["output", "Output"]]);
const MINIMAP = 72;

/**
 * @param {import("../core/signal.js").Signal<string>} filter
 * @param {import("../core/signal.js").Signal<Set<Group>>} groups
 * @param {import("../core/signal.js").Signal<boolean>} paused
 */
export function bar(filter, groups, paused) {
  const choices = signal(/** @type {{ text: string, hint: string }[]} */ ([]));
  const at = signal(-1);
  const known = () => {
    const sets = { servers: new Set(), clients: new Set(), methods: new Set(), names: new Set(), revisions: new Set() };
    let number = 0;
    for (const row of all()) {
      number += 1;
      if (number > 20_000) break;
      if (row.server) sets.servers.add(row.server);
      if (row.client) sets.clients.add(row.client);
      if (row.method) sets.methods.add(row.method);
      if (row.name && row.kind === "call") sets.names.add(row.name);
      if (row.revision) sets.revisions.add(row.revision);
    }
    return /** @type {any} */ (Object.fromEntries(Object.entries(sets).map(([name, set]) => [name, [...set].sort()])));
  };
  const input = h("input", {
    type: "text", class: "input filter", "data-find": true, role: "combobox", "aria-label": "Filter", "aria-autocomplete": "list", "aria-controls": "filter-choices", "aria-expanded": () => String(choices().length > 0),
    "aria-activedescendant": () => (at() >= 0 ? `filter-choice-${at()}` : null), autocomplete: "off", spellcheck: "false", placeholder: "Filter: server:files took:>100ms -method:ping",
    value: () => filter(),
    oninput: () => {
      filter.set(input.value);
      suggest();
    },
    onfocus: suggest,
    onblur: () => setTimeout(() => choices.set([]), 150),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      const list = choices.peek();
      if (event.key === "ArrowDown" && list.length > 0) at.update((n) => (n + 1) % list.length);
      else if (event.key === "ArrowUp" && list.length > 0) at.update((n) => (n - 1 + list.length) % list.length);
      else if ((event.key === "Enter" || event.key === "Tab") && at.peek() >= 0) accept(list[at.peek()]);
      else if (event.key === "Escape" && list.length > 0) choices.set([]);
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  });
  function suggest() {
    at.set(-1);
    choices.set(complete(input.value.slice(0, input.selectionStart ?? input.value.length), known()).slice(0, 11));
  }
  /** @param {{ text: string } | undefined} choice */
  function accept(choice) {
    if (!choice) return;
    filter.set(choice.text + input.value.slice(input.selectionStart ?? input.value.length));
    input.value = filter.peek();
    input.focus();
    suggest();
  }
  return h("div", { class: "traffic-bar" },
    h("div", { class: "find filter-box" }, icon("filter"), input,
      show(() => filter() !== "", () => h("button", { type: "button", class: "clear-filter", "aria-label": "Remove the filter", onclick: () => {
        filter.set("");
        input.focus();
      } }, icon("cross"))),
      h("ul", { class: "filter-choices", id: "filter-choices", role: "listbox", "aria-label": "Completions", hidden: () => choices().length === 0 }, () =>
        choices().map((choice, index) => h("li", { role: "option", id: `filter-choice-${index}`, "aria-selected": () => String(at() === index), onpointerdown: (/** @type {Event} */ event) => {
          event.preventDefault();
          accept(choice);
        } }, h("code", null, line(choice.text.trim().split(/\s(?=[^"]*(?:"[^"]*"[^"]*)*$)/).at(-1) ?? "", 80)), h("span", { class: "muted" }, choice.hint))))),
    h("div", { class: "segments", role: "group", "aria-label": "Rows" }, ...GROUPS.map(([id, label]) =>
      h("button", { type: "button", "aria-pressed": () => String(groups().has(id)), onclick: () => groups.update((set) => {
        const next = new Set(set);
        if (!next.delete(id)) next.add(id);
        return next;
      }) }, label))),
    h("button", { type: "button", class: "button", "aria-pressed": () => String(paused()), onclick: () => paused.update((now) => !now) }, () => icon(paused() ? "run" : "pause"), () => (paused() ? "Resume" : "Pause")),
    h("ul", { class: "chips", "aria-label": "Parts of the filter" }, each(() => parse(filter()), (term) => term.source, (term) =>
      h("li", { class: `chip${term().problem ? " error" : ""}` }, h("code", null, line(term().source, 60)), term().problem ? h("span", { class: "small" }, term().problem) : null,
        h("button", { type: "button", "aria-label": `Remove ${line(term().source, 60)}`, onclick: () => filter.set(without(filter.peek(), term())) }, icon("cross"))))));
}

/**
 * @param {object} options
 * @param {() => ReturnType<typeof summarize>} options.stats
 * @param {() => number} options.shownMessages
 * @param {() => boolean} options.isFiltered
 * @param {import("../core/signal.js").Signal<[number, number] | null>} options.range
 * @param {() => readonly Row[]} options.shownRoots
 * @param {() => unknown} options.slow
 */
export function summaryBar({ stats, shownMessages, isFiltered, range, shownRoots, slow }) {
  const figure = (/** @type {string} */ label, /** @type {() => number | null} */ read) => h("span", { class: "figure" }, h("span", { class: "muted" }, label), " ", () => (read() === null ? "–" : duration(read())));
  const span = () => {
    const rows = roots;
    const from = rows[0]?.at ?? 0;
    const until = rows.at(-1)?.at ?? 0;
    return /** @type {[number, number]} */ ([from, Math.max(from + 1000, until)]);
  };
  const map = h("svg", { class: "minimap", viewBox: `0 0 ${MINIMAP * 4} 20`, preserveAspectRatio: "none", role: "img", "aria-label": "Messages by time; drag to choose a part" }, () => {
    slow();
    const [from, until] = span();
    const { all: counts, failed } = timeline(roots, from, until, MINIMAP);
    const most = Math.max(1, ...counts);
    const chosen = range();
    const bars = counts.map((number, index) => {
      const height = number === 0 ? 1 : Math.max(3, Math.round((Math.log2(number + 1) / Math.log2(most + 1)) * 18));
      return h("rect", { class: number === 0 ? "none" : (failed[index] ?? 0) > 0 ? "failed" : "some", x: index * 4, y: 20 - height, width: 3, height });
    });
    if (!chosen) return bars;
    const x = (/** @type {number} */ at) => Math.max(0, Math.min(1, (at - from) / (until - from))) * MINIMAP * 4;
    return [...bars, h("rect", { class: "chosen", x: x(chosen[0]), y: 0, width: Math.max(2, x(chosen[1]) - x(chosen[0])), height: 20 })];
  });
  let start = 0;
  const timeAt = (/** @type {PointerEvent} */ event) => {
    const box = map.getBoundingClientRect();
    const [from, until] = span();
    return from + Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (until - from);
  };
  map.addEventListener("pointerdown", (event) => {
    start = timeAt(event);
    map.setPointerCapture(event.pointerId);
  });
  map.addEventListener("pointermove", (event) => {
    if (start > 0 && event.buttons === 1) range.set([Math.min(start, timeAt(event)), Math.max(start, timeAt(event))]);
  });
  map.addEventListener("pointerup", (event) => {
    const [from, until] = span();
    const now = timeAt(event);
    const bucket = (until - from) / MINIMAP;
    // A click chooses the bar under the pointer.
    if (Math.abs(now - start) < bucket / 2) range.set([now - bucket, now + bucket]);
    start = 0;
  });
  return h("div", { class: "summary-bar" },
    h("span", { class: "figure", role: "status" }, () => (isFiltered() ? `${count(shownMessages())} of ${plural((slow(), total()), "message")}` : plural((slow(), total()), "message"))),
    h("span", { class: () => `figure${stats().failed > 0 ? " error" : ""}` }, () => `${count(stats().failed)} failed`),
    figure("p50", () => stats().p50), figure("p95", () => stats().p95), figure("p99", () => stats().p99),
    h("svg", { class: "histogram only-wide", viewBox: "0 0 64 20", preserveAspectRatio: "none", role: "img", "aria-label": "How long calls took, from 60 µs to 2 s" }, () => {
      const counts = histogram(stats().times);
      const most = Math.max(1, ...counts);
      return counts.map((number, index) => h("rect", { class: number === 0 ? "none" : "some", x: index * 4, y: 20 - Math.max(1, (number / most) * 18), width: 3, height: Math.max(1, (number / most) * 18) }));
    }),
    h("span", { class: "spring" }),
    show(range, () => h("button", { type: "button", class: "chip", onclick: () => range.set(null) }, () => (range() ? `${clock(/** @type {[number, number]} */ (range())[0]).slice(0, 8)} to ${clock(/** @type {[number, number]} */ (range())[1]).slice(0, 8)}` : ""), icon("cross"))),
    map);
}

/** @param {any} options */
export function empty({ filter, terms, bodies, isFiltered, groups, range }) {
  return h("div", { class: "blank" }, () => {
    version();
    if (roots.length === 0) {
      const hint = overview()?.connect[0];
      const offer = overview()?.try_call;
      return [icon("traffic"), h("h2", null, "No messages yet"), hint ? [h("p", null, "Connect a client, or run a call."), h("pre", { class: "command" }, hint.text)] : h("p", null, "Calls appear here as they happen."),
        offer ? h("div", { class: "actions" }, h("a", { class: "button primary", href: format("explore", [offer.server, "tool", offer.tool]) }, icon("run"), `Try ${line(offer.tool, 40)}`)) : null];
    }
    if (!isFiltered()) return [h("h2", null, "Nothing to show"), h("div", { class: "actions" }, h("button", { type: "button", class: "button", onclick: () => groups.set(new Set(GROUPS.map(([id]) => id))) }, "Show all kinds of rows"))];
    const strict = strictest(terms(), [...all()], bodies);
    return [icon("filter"), h("h2", null, "No call matches"),
      strict ? [h("p", null, "Most rows are excluded by ", h("code", null, line(strict.source, 80)), "."), h("div", { class: "actions" }, h("button", { type: "button", class: "button", onclick: () => filter.set(without(filter.peek(), strict)) }, "Remove it"))]
        : h("div", { class: "actions" }, h("button", { type: "button", class: "button", onclick: () => {
          filter.set("");
          range.set(null);
        } }, "Remove the filter"))];
  });
}

/** @param {import("../core/signal.js").Signal<boolean>} wire */
export function footer(wire) {
  return h("div", { class: "traffic-foot" },
    h("label", { class: "choice" }, h("input", { type: "checkbox", checked: () => wire(), onchange: (/** @type {Event} */ event) => wire.set(/** @type {HTMLInputElement} */ (event.target).checked) }), "As on the wire"),
    h("span", { class: "spring" }),
    h("span", { class: "muted" }, () => {
      const buffer = overview()?.buffer;
      if (!buffer) return "";
      const since = buffer.since === undefined ? "" : `: since ${hour(buffer.since)}`;
      return `${buffer.bodies ? "" : "Bodies are not kept. "}Keeps the last ${Math.round(buffer.limit / 1_048_576)} MiB${since}${buffer.dropped > 0 ? `, ${plural(buffer.dropped, "older message")} dropped` : ""}. ${bytes(buffer.used)} in use.`;
    }),
    show(() => grade() === "control", () => h("button", { type: "button", class: "button quiet", onclick: () => act({ action: "clear" }).catch(fail) }, "Clear")));
}

/** The line between list and detail, which can be moved by pointer and keyboard. */
export function handle() {
  const element = h("div", { class: "handle", role: "separator", tabindex: "0", "aria-label": "Size of the detail", "aria-valuemin": "20", "aria-valuemax": "80", "aria-valuenow": recall("detail-size") ?? "45" });
  const set = (/** @type {number} */ percent) => {
    const size = Math.round(Math.max(20, Math.min(80, percent)));
    remember("detail-size", String(size));
    element.setAttribute("aria-valuenow", String(size));
    element.closest(".traffic-split")?.dispatchEvent(new Event("resized"));
  };
  const beside = () => matchMedia("(min-width: 1200px)").matches;
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  element.addEventListener("pointermove", (event) => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    const box = /** @type {HTMLElement} */ (element.closest(".traffic-split")).getBoundingClientRect();
    set(beside() ? ((box.right - event.clientX) / box.width) * 100 : ((box.bottom - event.clientY) / box.height) * 100);
  });
  element.addEventListener("keydown", (event) => {
    const now = Number(recall("detail-size") ?? 45);
    const step = { ArrowLeft: 5, ArrowUp: 5, ArrowRight: -5, ArrowDown: -5 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    set(now + step);
  });
  return element;
}

/** @param {HTMLElement} split */
export function sized(split) {
  const apply = () => split.style.setProperty("--detail", `${recall("detail-size") ?? "45"}%`);
  split.addEventListener("resized", apply);
  apply();
}

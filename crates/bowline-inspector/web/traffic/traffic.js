// Traffic: calls, notifications, log lines and server output on one time axis, with a filter and statistics.
import { cleanup, computed, effect, scope, signal } from "../core/signal.js";
import { each, fill, h, icon, show } from "../core/dom.js";
import { act, grade, query, recall, remember } from "../core/api.js";
import { amend, format, go, place } from "../core/route.js";
import { grid } from "../core/grid.js";
import { hostNow, overview } from "../core/model.js";
import { fail } from "../core/dialog.js";
import { bytes, clock, count, duration, hour, hue, line, plural } from "../core/text.js";
import { compile, complete, parse, strictest, without } from "./filter.js";
import { histogram, summarize, timeline } from "./stats.js";
import { all, ends, find, joinGaps, Row, roots, total, version } from "./store.js";
import { drawBar, niceScale } from "./waterfall.js";
import { markOrCompare } from "./compare.js";
import { callDetail, copyAs, resend } from "./detail.js";

/** @typedef {{ row: Row, key: number, level: number, lines: number, last: boolean, expanded: boolean | null }} FlatRow */
/** @typedef {"calls" | "notices" | "logs" | "output"} Group */

/** @type {Record<string, Group>} */
const GROUP = { call: "calls", policy: "calls", question: "calls", model: "calls", other: "calls", gap: "calls", notice: "notices", state: "notices", log: "logs", output: "output" };
const GROUPS = /** @type {const} */ ([["calls", "Calls"], ["notices", "Notices"], ["logs", "Logs"], ["output", "Output"]]);
const MINIMAP = 72;

/** Renders the view. */
export function traffic() {
  const filter = signal(place.peek().query.get("f") ?? "");
  const groups = signal(/** @type {Set<Group>} */ (new Set(GROUPS.map(([id]) => id))));
  const paused = signal(false);
  const hovered = signal(false);
  const wire = signal(false);
  const range = signal(/** @type {[number, number] | null} */ (null));
  const collapsed = signal(/** @type {Set<number>} */ (new Set()));
  const limit = signal(Infinity);
  const selected = computed(() => (place().view === "traffic" && place().parts[0] !== undefined ? Number(place().parts[0]) : null));
  const slow = signal(0);
  const tick = signal(0);

  const slowTimer = setInterval(() => slow.set(version.peek()), 250);
  const tickTimer = setInterval(() => {
    for (const row of lately()) {
      if (row.status === "running") {
        tick.update((n) => n + 1);
        return;
      }
    }
  }, 100);
  cleanup(() => {
    clearInterval(slowTimer);
    clearInterval(tickTimer);
  });
  /** The rows on screen are among the latest, or there is nothing that runs. */
  const lately = () => view?.onScreen() ?? [];

  // The address bar may change the filter; the filter is part of the address.
  effect(() => {
    const here = place();
    if (here.view === "traffic" && here.query.has("f") && here.query.get("f") !== filter.peek()) filter.set(here.query.get("f") ?? "");
  });
  effect(() => {
    const text = filter().trim();
    const here = place.peek();
    if (here.view === "traffic" && (here.query.get("f") ?? "") !== text) amend(format("traffic", here.parts, { f: text }));
  });

  const terms = computed(() => parse(filter()));
  const bodies = bodySearch(terms);
  const matches = computed(() => compile(terms(), bodies));
  const isFiltered = computed(() => terms().length > 0 || range() !== null);

  // Nothing moves what is being read: new rows wait while the pointer is over the list, a row is selected, or on pause.
  const frozen = computed(() => paused() || hovered() || selected() !== null);
  effect(() => {
    if (!frozen()) limit.set(Infinity);
    else if (limit.peek() === Infinity) limit.set(newestSeq());
  });

  const shownRoots = computed(() => {
    version();
    const matching = matches();
    const filtered = isFiltered();
    const until = limit();
    const wanted = groups();
    const time = range();
    /** @type {(row: Row) => boolean} */
    const fits = (row) => (wanted.has(GROUP[row.kind] ?? "calls") && matching(row)) || row.children.some(fits);
    /** @type {Row[]} */
    const list = [];
    for (const row of roots) {
      if (row.seq > until) break;
      if (row.kind !== "gap") {
        if (time && (row.at < time[0] || row.at > time[1])) continue;
        if (filtered ? !fits(row) : !wanted.has(GROUP[row.kind] ?? "calls")) continue;
      } else if (list.at(-1)?.kind === "gap") {
        list.push(joinGaps(/** @type {Row} */ (list.pop()), row));
        continue;
      }
      list.push(row);
    }
    return list;
  });
  const waiting = computed(() => {
    version();
    const until = limit();
    if (until === Infinity) return 0;
    let number = 0;
    for (let index = roots.length - 1; index >= 0 && /** @type {Row} */ (roots[index]).seq > until; index -= 1) number += 1;
    return number;
  });

  // The call that is being read grows in place; new calls wait.
  const flat = computed(() => {
    const until = limit();
    const wanted = groups();
    const closed = collapsed();
    const chosen = selected();
    const followed = chosen === null ? null : (find(chosen)?.root ?? null);
    /** @type {FlatRow[]} */
    const list = [];
    /** @type {(row: Row, level: number, lines: number, last: boolean) => void} */
    const push = (row, level, lines, last) => {
      const children = row.children.length === 0 ? row.children : row.children.filter((child) => (child.seq <= until || row.root === followed) && wanted.has(GROUP[child.kind] ?? "calls"));
      const expanded = children.length === 0 ? null : !closed.has(row.seq);
      list.push({ row, key: row.seq, level, lines, last, expanded });
      if (!expanded) return;
      children.forEach((child, index) => {
        const final = index === children.length - 1;
        push(child, level + 1, final ? lines : lines | (1 << Math.min(level, 20)), final);
      });
    };
    if (wire()) return onTheWire(shownRoots(), until);
    for (const row of shownRoots()) push(row, 1, 0, true);
    return list;
  });

  const stats = computed(() => {
    slow();
    const matching = matches();
    /** @type {Row[]} */
    const rows = [];
    // The topmost rows that match: the legs of one call are not counted twice.
    /** @type {(row: Row) => void} */
    const visit = (row) => {
      if (row.kind !== "gap" && matching(row)) rows.push(row);
      else row.children.forEach(visit);
    };
    for (const row of shownRoots.peek()) visit(row);
    filter();
    groups();
    range();
    return summarize(rows);
  });
  const shownMessages = computed(() => {
    slow();
    filter();
    groups();
    range();
    /** @type {(row: Row) => number} */
    const sum = (row) => row.children.reduce((so, child) => so + sum(child), row.messages);
    return shownRoots.peek().reduce((so, row) => so + sum(row), 0);
  });

  const view = list({ flat, selected, collapsed, tick, rowHeight: () => (recall("density") === "compact" ? 24 : 28) });
  view.element.addEventListener("pointerenter", (event) => hovered.set(event.pointerType === "mouse"));
  view.element.addEventListener("pointerleave", () => hovered.set(false));

  // A place that names a call shows it, also when it arrives later.
  let revealed = /** @type {number | null} */ (null);
  effect(() => {
    const now = selected();
    version();
    if (now === null) revealed = null;
    if (now === null || revealed === now || !find(now)) return;
    if (now > limit.peek()) limit.set(Infinity);
    revealed = now;
    requestAnimationFrame(() => view.show(find(now)?.seq ?? now));
  });

  const detail = h("div", { class: "detail-place" });
  let end = () => {};
  cleanup(() => end());
  const chosenRow = computed(() => {
    const now = selected();
    if (now === null) return null;
    if (!find(now)) version();
    return find(now);
  });
  effect(() => {
    const row = chosenRow();
    end();
    end = () => {};
    if (selected() === null) {
      fill(detail);
      return;
    }
    if (!row) {
      fill(detail, h("div", { class: "blank small-blank" }, h("h2", null, "This call is not in the buffer"), h("p", null, "The buffer keeps the latest messages only.")));
      return;
    }
    const [node, dispose] = scope(() => callDetail(row, close));
    end = dispose;
    fill(detail, node);
  });
  function close() {
    go(format("traffic", [], { f: filter.peek().trim() }));
    view.focus();
  }

  const element = h("div", { class: () => `view traffic${selected() === null ? "" : " has-detail"}`, onkeydown: (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && selected() !== null && !document.querySelector("dialog[open], [popover]:popover-open")) close();
  } },
    h("h1", { class: "visually-hidden" }, "Traffic"),
    bar(filter, groups, paused),
    summaryBar({ stats, shownMessages, isFiltered, range, shownRoots, slow }),
    h("div", { class: "traffic-split", ref: sized },
      h("div", { class: "traffic-list" }, view.element,
        show(() => flat().length === 0, () => empty({ filter, terms, bodies, isFiltered, groups, range })),
        show(() => waiting() > 0 && selected() !== null || (waiting() > 0 && paused()) || (waiting() > 0 && hovered()), () =>
          h("button", { type: "button", class: "button primary new-rows", onclick: () => {
            paused.set(false);
            if (selected.peek() !== null) limit.set(newestSeq());
            else limit.set(Infinity);
            view.follow();
          } }, icon("down"), () => `${count(waiting())} new`))),
      h("div", { class: "traffic-detail", hidden: () => selected() === null }, handle(), detail)),
    footer(wire));
  return element;
}

function newestSeq() {
  return roots.at(-1)?.seq ?? 0;
}

/**
 * Every message by itself, in the order in which it passed.
 * @param {readonly Row[]} trees
 * @param {number} until
 * @returns {FlatRow[]}
 */
function onTheWire(trees, until) {
  /** @type {FlatRow[]} */
  const list = [];
  /** @type {(row: Row) => void} */
  const push = (row) => {
    list.push({ row, key: row.seq, level: 1, lines: 0, last: true, expanded: null });
    if (row.last !== null && row.last <= until) {
      const answer = Object.assign(Object.create(Row.prototype), row, { seq: row.last, direction: row.direction === "in" ? "out" : "in", parent: null, at: row.at + (row.took ?? 0), took: null });
      list.push({ row: answer, key: row.last, level: 1, lines: 0, last: true, expanded: null });
    }
    row.children.forEach(push);
  };
  trees.forEach(push);
  return list.sort((a, b) => a.key - b.key);
}

/**
 * Searches bodies in the host. Until the answer is there, the term excludes nothing.
 * @param {() => import("./filter.js").Term[]} terms
 */
function bodySearch(terms) {
  const found = signal(/** @type {Map<string, Set<number>>} */ (new Map()));
  const asked = new Set();
  effect(() => {
    for (const term of terms()) {
      if (term.word !== "body" || term.value === "" || asked.has(term.value)) continue;
      const text = term.value;
      asked.add(text);
      setTimeout(async () => {
        if (!terms().some((each) => each.value === text)) {
          asked.delete(text);
          return;
        }
        const seqs = new Set();
        let before;
        try {
          for (let page = 0; page < 20; page += 1) {
            const reply = await query({ query: "find", text, ...(before === undefined ? {} : { before }) });
            for (const seq of reply.seqs) seqs.add(seq);
            before = reply.next;
            if (before === undefined) break;
          }
          found.update((map) => new Map(map).set(text, seqs));
        } catch (error) {
          fail(error);
        }
      }, 150);
    }
  });
  return (/** @type {string} */ text) => found().get(text) ?? null;
}

/**
 * @param {object} options
 * @param {() => readonly FlatRow[]} options.flat
 * @param {() => number | null} options.selected
 * @param {import("../core/signal.js").Signal<Set<number>>} options.collapsed
 * @param {() => unknown} options.tick
 * @param {() => number} options.rowHeight
 */
function list({ flat, selected, collapsed, tick, rowHeight }) {
  /** @type {WeakMap<HTMLElement, string>} */
  const drawn = new WeakMap();
  let scale = 1;
  /** @type {Row[]} */
  let screen = [];
  const axis = signal(1);
  const began = performance.now();
  const view = grid({
    label: "Traffic",
    columns: [{ label: "Time", className: "c-time" }, { label: "Who", className: "c-who" }, { label: "What", className: "c-what" }, { label: "Status", className: "c-status" }, { label: "Took", className: "c-took number" }, { label: "Where the time went", className: "c-bar" }],
    rows: () => {
      const rows = flat();
      return rows;
    },
    key: (item) => item.key,
    tree: (item) => item,
    version: () => {
      version();
      tick();
    },
    prepare: (rows) => {
      screen = rows.map((item) => item.row);
      // The longest call of the rows on screen sets the scale, so bars of neighbors compare.
      const longest = Math.max(1, ...screen.map((row) => (row.status === "running" ? hostNow() - row.at : (row.took ?? 0)) + row.at - row.root.at));
      scale = niceScale(longest);
      axis.set(scale);
    },
    draw: (item, cells, element) => {
      const { row } = item;
      const stamp = `${item.key} ${row.status} ${row.word} ${row.children.length} ${item.lines} ${item.last} ${item.expanded} ${row.server} ${row.peer} ${row.name} ${scale} ${row.status === "running" ? performance.now() : ""}`;
      if (drawn.get(element) === stamp) return;
      drawn.set(element, stamp);
      element.className = `grid-row kind-${row.kind} hue-${hue(row.server || row.peer)}${row.status === "failed" || row.status === "denied" ? " failed" : ""}`;
      if (row.arrived > began && performance.now() - row.arrived < 600) element.classList.add("arrived");
      drawCells(item, cells, scale);
    },
    selected: () => (selected() === null ? null : (find(/** @type {number} */ (selected()))?.seq ?? selected())),
    select: () => {},
    open: (item) => {
      const seq = item.row.seq;
      if (item.row.kind === "gap") return;
      go(format("traffic", [String(seq)], { f: place.peek().query.get("f") ?? "" }));
    },
    expand: (item, expand) => collapsed.update((set) => {
      const next = new Set(set);
      if (expand) next.delete(item.key);
      else next.add(item.key);
      return next;
    }),
    parent: (item) => {
      const { parent } = item.row;
      return parent ? (flat().find((each) => each.row === parent) ?? null) : null;
    },
    press: (key, item) => {
      if (key === "r") resend(item.row);
      else if (key === "c") copyAs(item.row, "json");
      else if (key === "x") markOrCompare(item.row);
      else return false;
      return true;
    },
    rowHeight,
  });
  const head = view.element.querySelector(".c-bar");
  if (head) fill(head, h("span", { class: "visually-hidden" }, "Where the time went"), h("span", { class: "axis", "aria-hidden": "true" }, h("span", null, "0"), h("span", null, () => duration(axis() / 2)), h("span", null, () => duration(axis()))));
  return { ...view, onScreen: () => screen };
}

/**
 * @param {FlatRow} item
 * @param {HTMLElement[]} cells
 * @param {number} scale
 */
function drawCells(item, cells, scale) {
  const { row } = item;
  const [time, who, what, status, took, bar] = /** @type {[HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement]} */ (cells);
  fill(time, thread(item), h("span", { class: "time" }, item.level === 1 ? [clock(row.at).slice(0, 8), h("span", { class: "only-wide" }, clock(row.at).slice(8))] : `+${duration(Math.max(0, row.at - row.root.at))}`));
  const [from, to] = ends(row);
  fill(who, row.kind === "gap" ? null : [row.server || row.kind === "output" ? h("span", { class: "mark" }) : null, h("span", { class: "ellipsis" }, line(from, 40), to ? [h("span", { class: "muted" }, " → "), line(to, 40)] : null)]);
  fill(what, whatCell(row));
  const look = /** @type {Record<string, [string, string]>} */ ({ running: ["muted", "clock"], done: ["ok", "check"], failed: ["error", "cross"], cancelled: ["muted", "stop"], denied: ["error", "stop"] })[row.status];
  fill(status, look ? h("span", { class: `status ${look[0]}` }, icon(look[1]), h("span", { class: "ellipsis" }, row.word || "Running")) : null);
  took.textContent = row.took !== null ? duration(row.took) : "";
  drawBar(bar, row, scale);
}

/** @param {Row} row */
function whatCell(row) {
  if (row.kind === "gap") return h("span", { class: "warn status" }, icon("alert"), row.name);
  if (row.kind === "output") return h("span", { class: "ellipsis output-line" }, line(row.name, 300));
  if (row.kind === "policy" || row.kind === "question" || row.kind === "model" || row.kind === "state") return h("span", { class: "ellipsis" }, h("span", { class: "muted" }, `${row.kind === "state" ? "server" : row.kind} `), line(row.name || row.method, 200));
  return h("span", { class: "ellipsis" }, h("span", { class: row.name ? "muted" : "" }, line(row.method.replace(/^notifications\//, "") || row.kind, 80)), row.name ? [" ", h("b", null, line(row.name, 160))] : null, row.revision && row.leg === "server" && row.kind === "call" ? h("span", { class: "rev" }, row.revision) : null);
}

/**
 * The rope that joins a call to what it caused.
 * @param {FlatRow} item
 */
function thread(item) {
  const pieces = [];
  for (let level = 1; level < item.level && level < 8; level += 1) {
    const own = level === item.level - 1;
    const passes = (item.lines & (1 << level)) !== 0;
    pieces.push(h("span", { class: `rope${own ? " bend" : ""}${passes || (own && !item.last) ? " through" : ""}` }));
  }
  if (item.expanded !== null) pieces.push(h("span", { class: `twist${item.expanded ? " open" : ""}`, "data-toggle": true, "aria-hidden": "true" }));
  else pieces.push(h("span", { class: "twist none", "aria-hidden": "true" }));
  return h("span", { class: `thread${item.expanded ? " starts" : ""}`, "aria-hidden": "true" }, ...pieces);
}

/**
 * @param {import("../core/signal.js").Signal<string>} filter
 * @param {import("../core/signal.js").Signal<Set<Group>>} groups
 * @param {import("../core/signal.js").Signal<boolean>} paused
 */
function bar(filter, groups, paused) {
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
function summaryBar({ stats, shownMessages, isFiltered, range, shownRoots, slow }) {
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
function empty({ filter, terms, bodies, isFiltered, groups, range }) {
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
function footer(wire) {
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
function handle() {
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
function sized(split) {
  const apply = () => split.style.setProperty("--detail", `${recall("detail-size") ?? "45"}%`);
  split.addEventListener("resized", apply);
  apply();
}

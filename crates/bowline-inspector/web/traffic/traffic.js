// Traffic: calls, notifications, log lines and server output on one time axis, with a filter and statistics.
import { cleanup, computed, effect, scope, signal } from "../core/signal.js";
import { fill, h, icon, show } from "../core/dom.js";
import { query, recall } from "../core/api.js";
import { amend, format, go, place } from "../core/route.js";
import { fail } from "../core/dialog.js";
import { count } from "../core/text.js";
import { bar, empty, footer, GROUPS, handle, sized, summaryBar } from "./bar.js";
import { callDetail } from "./detail.js";
import { compile, parse } from "./filter.js";
import { list } from "./list.js";
import { summarize } from "./stats.js";
import { find, joinGaps, Row, roots, version } from "./store.js";

/** @typedef {{ row: Row, key: number, level: number, lines: number, last: boolean, expanded: boolean | null }} FlatRow */
/** @typedef {import("./bar.js").Group} Group */

/** @type {Record<string, Group>} */
const GROUP = { call: "calls", policy: "calls", question: "calls", model: "calls", other: "calls", gap: "calls", notice: "notices", state: "notices", log: "logs", output: "output" };

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

// The list of Traffic: draws rows with their thread and their time, and follows the keyboard.
import { signal } from "../core/signal.js";
import { fill, h, icon } from "../core/dom.js";
import { format, go, place } from "../core/route.js";
import { grid } from "../core/grid.js";
import { hostNow } from "../core/model.js";
import { clock, duration, hue, line } from "../core/text.js";
import { ends, find, version } from "./store.js";
import { drawBar, niceScale } from "./waterfall.js";
import { markOrCompare } from "./compare.js";
import { copyAs, resend } from "./detail.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {import("./traffic.js").FlatRow} FlatRow */

/**
 * @param {object} options
 * @param {() => readonly FlatRow[]} options.flat
 * @param {() => number | null} options.selected
 * @param {import("../core/signal.js").Signal<Set<number>>} options.collapsed
 * @param {() => unknown} options.tick
 * @param {() => number} options.rowHeight
 */
export function list({ flat, selected, collapsed, tick, rowHeight }) {
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
      const look = `grid-row kind-${row.kind} hue-${hue(row.server || row.peer)}${row.status === "failed" || row.status === "denied" ? " failed" : ""}`;
      if (element.className !== look) element.className = look;
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

/** What a cell was filled with, so that a row which looks like the one before in its place costs nothing. @type {WeakMap<Element, string>} */
const filled = new WeakMap();

/**
 * Fills a cell, unless it shows the same already. Making elements, and their style and layout, is what scrolling costs.
 * @param {HTMLElement} cell
 * @param {string} look
 * @param {() => import("../core/dom.js").Child} make
 */
function refill(cell, look, make) {
  if (filled.get(cell) === look) return;
  filled.set(cell, look);
  fill(cell, make());
}

/** @type {WeakMap<Element, { thread: HTMLElement, time: Text, fraction: Text }>} */
const times = new WeakMap();

/**
 * @param {FlatRow} item
 * @param {HTMLElement} cell
 */
function timeCell(item, cell) {
  let known = times.get(cell);
  if (!known) {
    known = { thread: h("span", { class: "contents" }), time: document.createTextNode(""), fraction: document.createTextNode("") };
    fill(cell, known.thread, h("span", { class: "time" }, known.time, h("span", { class: "only-wide" }, known.fraction)));
    times.set(cell, known);
  }
  refill(known.thread, `${item.level} ${item.lines} ${item.last} ${item.expanded}`, () => thread(item));
  const at = clock(item.row.at);
  known.time.data = item.level === 1 ? at.slice(0, 8) : `+${duration(Math.max(0, item.row.at - item.row.root.at))}`;
  known.fraction.data = item.level === 1 ? at.slice(8) : "";
}

/** @type {Record<string, [string, string]>} */
const LOOKS = { running: ["muted", "clock"], done: ["ok", "check"], failed: ["error", "cross"], cancelled: ["muted", "stop"], denied: ["error", "stop"] };

/**
 * @param {FlatRow} item
 * @param {HTMLElement[]} cells
 * @param {number} scale
 */
function drawCells(item, cells, scale) {
  const { row } = item;
  const [time, who, what, status, took, bar] = /** @type {[HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement]} */ (cells);
  timeCell(item, time);
  const [from, to] = ends(row);
  const marked = row.kind !== "gap" && (row.server !== "" || row.kind === "output");
  refill(who, `${row.kind === "gap"} ${marked} ${from}\n${to}`, () => (row.kind === "gap" ? null : [marked ? h("span", { class: "mark" }) : null, h("span", { class: "ellipsis" }, line(from, 40), to ? [h("span", { class: "muted" }, " → "), line(to, 40)] : null)]));
  refill(what, `${row.kind} ${row.leg} ${row.revision} ${row.method}\n${row.name}`, () => whatCell(row));
  const look = LOOKS[row.status];
  refill(status, `${row.status} ${row.word}`, () => (look ? h("span", { class: `status ${look[0]}` }, icon(look[1]), h("span", { class: "ellipsis" }, row.word || "Running")) : null));
  const length = row.took !== null ? duration(row.took) : "";
  if (took.textContent !== length) took.textContent = length;
  // Only a row without a length of time looks like others.
  const instant = row.took === null && row.status === "" ? `instant ${Math.min(99, (Math.max(0, row.at - row.root.at) / scale) * 100)}` : "";
  if (instant !== "" && filled.get(bar) === instant) return;
  filled.set(bar, instant);
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

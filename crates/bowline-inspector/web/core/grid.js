// A virtual tree grid: draws only the rows on screen, so 100,000 rows scroll like a hundred.
import { cleanup, effect, signal } from "./signal.js";
import { h } from "./dom.js";
import { isField } from "./keys.js";

/**
 * @template R
 * @typedef {object} GridOptions
 * @property {string} label
 * @property {{ label: string, className?: string }[]} columns
 * @property {() => readonly R[]} rows the flat list of visible rows, in order
 * @property {(row: R) => string | number} key
 * @property {(row: R) => { level: number, expanded: boolean | null }} tree
 * @property {(row: R, cells: HTMLElement[], element: HTMLElement) => void} draw fills the cells of a row
 * @property {() => string | number | null} selected
 * @property {(row: R | null) => void} select
 * @property {(row: R) => void} open
 * @property {(row: R, expand: boolean) => void} expand
 * @property {(row: R) => R | null} parent
 * @property {(key: string, row: R) => boolean} [press] single letters; returns whether it acted
 * @property {() => number} rowHeight
 * @property {() => unknown} [version] read to redraw rows whose content changed
 * @property {(rows: readonly R[]) => void} [prepare] runs before the rows on screen are drawn
 */

const SPARE = 6;

/**
 * Sets an attribute if it differs: the style of a row depends on them.
 * @param {Element} element
 * @param {string} name
 * @param {string | null} value
 */
function write(element, name, value) {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/**
 * Creates the grid. `follow()` scrolls to the newest row and stays there.
 * @template R
 * @param {GridOptions<R>} options
 */
export function grid(options) {
  const columns = options.columns.length;
  const sizer = h("div", { class: "grid-sizer", role: "presentation" });
  const head = h("div", { class: "grid-head grid-row", role: "row", "aria-rowindex": "1" },
    ...options.columns.map((column) => h("div", { class: `cell ${column.className ?? ""}`, role: "columnheader" }, column.label)));
  const body = h("div", { class: "grid-body", role: "rowgroup" }, sizer);
  const element = h("div", { class: "grid", role: "treegrid", "aria-label": options.label, "aria-colcount": String(columns) },
    h("div", { role: "rowgroup", class: "grid-head-group" }, head), body);

  /** @type {{ element: HTMLElement, cells: HTMLElement[], index: number, key: string | number | null }[]} */
  const pool = [];
  const top = signal(0);
  const height = signal(0);
  const following = signal(true);
  const focused = signal(/** @type {string | number | null} */ (null));
  let anchor = /** @type {{ key: string | number, offset: number } | null} */ (null);
  let hasFocus = false;
  let drawnHeight = -1;
  let drawnAt = 0;
  const spares = signal(0);
  let spareTimer = 0;
  cleanup(() => clearTimeout(spareTimer));

  const observer = new ResizeObserver(() => {
    height.set(body.clientHeight);
    // The head keeps its columns above those of the rows, whatever the width of the scroll bar.
    head.style.marginRight = `${body.offsetWidth - body.clientWidth}px`;
  });
  observer.observe(body);
  cleanup(() => observer.disconnect());

  body.addEventListener("scroll", () => {
    const rows = options.rows();
    const rowHeight = options.rowHeight();
    top.set(body.scrollTop);
    // Rows that came after the last drawing are not a reason to stop following.
    following.set(body.scrollTop + body.clientHeight >= drawnHeight - 4);
    const first = rows[Math.floor(body.scrollTop / rowHeight)];
    anchor = first === undefined ? null : { key: options.key(first), offset: body.scrollTop % rowHeight };
  }, { passive: true });

  /** @param {number} index */
  function rowAt(index) {
    const rows = options.rows();
    return rows[Math.max(0, Math.min(rows.length - 1, index))];
  }

  /** @param {string | number | null} key */
  function indexOf(key) {
    return key === null ? -1 : options.rows().findIndex((row) => options.key(row) === key);
  }

  /** @param {number} index */
  function reveal(index) {
    const rowHeight = options.rowHeight();
    const from = index * rowHeight;
    if (from < body.scrollTop) body.scrollTop = from;
    else if (from + rowHeight > body.scrollTop + body.clientHeight) body.scrollTop = from + rowHeight - body.clientHeight;
    top.set(body.scrollTop);
    // Whoever moves away from the newest row does not want to be taken back to it.
    const rows = options.rows();
    following.set(index >= rows.length - 1);
    const first = rows[Math.floor(body.scrollTop / rowHeight)];
    anchor = first === undefined ? null : { key: options.key(first), offset: body.scrollTop % rowHeight };
  }

  /** @param {number} index */
  function move(index) {
    const row = rowAt(index);
    if (row === undefined) return;
    focused.set(options.key(row));
    hasFocus = true;
    reveal(indexOf(options.key(row)));
    draw();
    pool.find((each) => each.key === focused.peek())?.element.focus({ preventScroll: true });
  }

  element.addEventListener("focusin", (event) => {
    hasFocus = true;
    const row = pool.find((each) => each.element === event.target);
    if (row && row.key !== null) focused.set(row.key);
  });
  element.addEventListener("focusout", () => {
    hasFocus = element.contains(document.activeElement);
  });
  body.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const row = pool.find((each) => each.element.contains(target));
    if (!row) return;
    const item = options.rows()[row.index];
    if (item === undefined) return;
    focused.set(row.key);
    if (target.closest("[data-toggle]")) {
      const state = options.tree(item);
      options.expand(item, !state.expanded);
    } else options.open(item);
  });
  element.addEventListener("keydown", (event) => {
    if (isField(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = indexOf(focused.peek());
    const row = options.rows()[at];
    const page = Math.max(1, Math.floor(body.clientHeight / options.rowHeight()) - 1);
    const state = row === undefined ? null : options.tree(row);
    let used = true;
    if (event.key === "ArrowDown" || event.key === "j") move(at + 1);
    else if (event.key === "ArrowUp" || event.key === "k") move(Math.max(0, at - 1));
    else if (event.key === "PageDown") move(at + page);
    else if (event.key === "PageUp") move(at - page);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(Infinity);
    else if (row === undefined) used = false;
    else if (event.key === "Enter" || event.key === " ") options.open(row);
    else if (event.key === "ArrowRight") {
      if (state?.expanded === false) options.expand(row, true);
      else if (state?.expanded) move(at + 1);
    } else if (event.key === "ArrowLeft") {
      const parent = options.parent(row);
      if (state?.expanded) options.expand(row, false);
      else if (parent) move(indexOf(options.key(parent)));
    } else used = options.press?.(event.key, row) ?? false;
    if (used) event.preventDefault();
  });

  /** @param {number} index */
  function slot(index) {
    let row = pool[index];
    if (row) return row;
    const cells = options.columns.map((column) => h("div", { class: `cell ${column.className ?? ""}`, role: "gridcell" }));
    row = { element: h("div", { class: "grid-row", role: "row" }, ...cells), cells, index: -1, key: null };
    pool[index] = row;
    sizer.append(row.element);
    return row;
  }

  function draw() {
    options.version?.();
    const rows = options.rows();
    const rowHeight = options.rowHeight();
    const selected = options.selected();
    const focus = focused();
    const total = rows.length * rowHeight;
    const visible = height() || body.clientHeight || 600;
    if (drawnHeight !== total) {
      drawnHeight = total;
      sizer.style.height = `${total}px`;
    }
    if (following.peek()) {
      if (body.scrollTop !== total - visible && total > visible) body.scrollTop = total - visible;
    } else if (anchor) {
      // Rows that were dropped or inserted above do not move what is being read.
      const hint = Math.floor(top.peek() / rowHeight);
      const row = rows[hint];
      if (row !== undefined && options.key(row) !== anchor.key) {
        const index = indexOf(anchor.key);
        if (index >= 0 && index !== hint) body.scrollTop = index * rowHeight + anchor.offset;
      }
    }
    top();
    spares();
    // Read once, before anything is written: later it would force a layout.
    const at = body.scrollTop;
    // Rows beyond the edges are for slow scrolling; a jump draws what is seen, and them a moment later.
    const jumped = Math.abs(at - drawnAt) > visible;
    drawnAt = at;
    const spare = jumped ? 0 : SPARE;
    if (jumped) {
      clearTimeout(spareTimer);
      spareTimer = setTimeout(() => spares.update((n) => n + 1), 60);
    }
    const from = Math.max(0, Math.floor(at / rowHeight) - spare);
    const until = Math.min(rows.length, Math.ceil((at + visible) / rowHeight) + spare);
    let used = 0;
    let tabbable = false;
    // A row keeps its element while it is on screen, so that focus and hover stay.
    const wanted = new Map();
    for (let index = from; index < until; index += 1) {
      const row = rows[index];
      if (row !== undefined) wanted.set(options.key(row), index);
    }
    options.prepare?.(rows.slice(from + (from > 0 ? spare : 0), until));
    /** @type {Map<string | number, typeof pool[number]>} */
    const kept = new Map();
    /** @type {typeof pool} */
    const free = [];
    for (const each of pool) {
      if (each.key !== null && wanted.has(each.key) && !kept.has(each.key)) kept.set(each.key, each);
      else free.push(each);
    }
    for (const [key, index] of wanted) {
      const row = /** @type {R} */ (rows[index]);
      let place = kept.get(key);
      if (!place) {
        place = free.pop() ?? slot(pool.length);
        place.key = key;
        place.element.classList.remove("arrived");
      }
      used += 1;
      place.index = index;
      const state = options.tree(row);
      const node = place.element;
      node.hidden = false;
      node.style.transform = `translateY(${index * rowHeight}px)`;
      write(node, "aria-rowindex", String(index + 2));
      write(node, "aria-level", String(state.level));
      write(node, "aria-expanded", state.expanded === null ? null : String(state.expanded));
      write(node, "aria-selected", String(key === selected));
      const tab = key === focus;
      tabbable ||= tab;
      node.tabIndex = tab ? 0 : -1;
      options.draw(row, place.cells, node);
    }
    for (const each of free) {
      if (each.element.contains(document.activeElement)) hasFocus = true;
      each.element.hidden = true;
      each.key = null;
    }
    if (!tabbable) {
      const first = pool.filter((each) => each.key !== null).sort((a, b) => a.index - b.index).find((each) => each.index * rowHeight >= at);
      if (first) first.element.tabIndex = 0;
    }
    element.setAttribute("aria-rowcount", String(rows.length + 1));
    return used;
  }

  effect(() => {
    draw();
  });

  return {
    element,
    following,
    follow() {
      following.set(true);
      const total = options.rows().length * options.rowHeight();
      body.scrollTop = total;
      top.set(body.scrollTop);
    },
    /** @param {string | number} key */
    show(key) {
      const index = indexOf(key);
      if (index < 0) return false;
      focused.set(key);
      const from = index * options.rowHeight();
      // A row that is not on screen appears in its upper third, so that what it caused is there too.
      if (from < body.scrollTop || from + options.rowHeight() > body.scrollTop + body.clientHeight) body.scrollTop = Math.max(0, from - body.clientHeight / 3);
      reveal(index);
      following.set(false);
      return true;
    },
    focus() {
      const at = indexOf(focused.peek());
      if (at >= 0) move(at);
      else move(Math.floor(body.scrollTop / options.rowHeight()));
    },
    isFocused: () => hasFocus,
  };
}

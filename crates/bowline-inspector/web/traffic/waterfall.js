// Where the time went: bars whose parts are colored by who spends the time.
import { h } from "../core/dom.js";
import { duration, line } from "../core/text.js";
import { hostNow } from "../core/model.js";
import { parts } from "./store.js";

/** @typedef {import("./store.js").Row} Row */

/** @type {Record<import("./store.js").Who, string>} */
const WORDS = { gateway: "gateway and rules", server: "server", person: "you", model: "model" };

/**
 * A length of time that reads well and is at least `ms`.
 * @param {number} ms
 */
export function niceScale(ms) {
  const base = 10 ** Math.floor(Math.log10(Math.max(1, ms)));
  for (const factor of [1, 2, 4, 5, 10]) if (base * factor >= ms) return base * factor;
  return base * 10;
}

/**
 * Fills a cell with the bar of one row. Bars of one tree start at its first message; all share one scale.
 * @param {HTMLElement} cell
 * @param {Row} row
 * @param {number} scale milliseconds of the whole width
 */
export function drawBar(cell, row, scale) {
  const start = row.root.at;
  const now = hostNow();
  const offset = Math.max(0, row.at - start);
  const length = row.took ?? (row.status === "running" ? Math.max(0, now - row.at) : 0);
  const bar = h("div", { class: `wf-bar${row.status === "running" ? " running" : ""}${length === 0 && row.took === null ? " instant" : ""}` });
  bar.style.left = `${Math.min(99, (offset / scale) * 100)}%`;
  bar.style.width = `${Math.min(100 - (offset / scale) * 100, (length / scale) * 100)}%`;
  if (row.took !== null || row.status === "running") {
    for (const part of parts(row, now)) {
      const piece = h("div", { class: `who-${part.who}` });
      piece.style.flexGrow = String(Math.max(0.0001, part.until - part.from));
      bar.append(piece);
    }
  }
  if (row.status === "failed" || row.status === "denied") bar.append(h("div", { class: "wf-cap" }));
  cell.replaceChildren(bar);
}

/**
 * One bar with its legend, for a result or a summary.
 * @param {Row} row
 */
export function timeBar(row) {
  const pieces = parts(row, hostNow());
  /** @type {Map<import("./store.js").Who, number>} */
  const sums = new Map();
  for (const piece of pieces) sums.set(piece.who, (sums.get(piece.who) ?? 0) + piece.until - piece.from);
  const label = [...sums].map(([who, time]) => `${who === "server" ? row.server || "server" : WORDS[who]} ${duration(time)}`).join(", ");
  return h("div", { class: "time-bar" },
    h("div", { class: "segment-bar", role: "img", "aria-label": `Where the time went: ${line(label, 200)}` }, ...pieces.map((piece) => h("div", { class: `who-${piece.who}`, style: { "flex-grow": Math.max(0.001, piece.until - piece.from) } }))),
    h("ul", { class: "legend" }, ...[...sums].map(([who, time]) => h("li", null, h("span", { class: `swatch who-${who}` }), who === "server" ? line(row.server || "server", 40) : WORDS[who], h("span", { class: "muted number" }, duration(time))))));
}

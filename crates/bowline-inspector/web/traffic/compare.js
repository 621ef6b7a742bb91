// Compares two calls: how they ended, their arguments and their results side by side.
import { signal } from "../core/signal.js";
import { fill, h, icon } from "../core/dom.js";
import { query } from "../core/api.js";
import { dialog, toast } from "../core/dialog.js";
import { jsonView, locate, pretty, read } from "../core/json.js";
import { bytes, clock, duration, line } from "../core/text.js";
import { find, roots } from "./store.js";
import { rowStatus } from "../home/home.js";

/** @typedef {import("./store.js").Row} Row */

/** The call that waits for another one to be compared with. */
const marked = signal(/** @type {number | null} */ (null));

/**
 * Returns the calls that a call can be compared with.
 * @param {Row} row
 */
export function comparable(row) {
  const other = marked() === null ? null : find(/** @type {number} */ (marked()));
  return { marked: other && other !== row ? other : null, before: callBefore(row) };
}

/**
 * Marks a call, or compares it with the one that is marked.
 * @param {Row} row
 */
export function markOrCompare(row) {
  if (row.kind !== "call") return;
  const { marked: other } = comparable(row);
  if (other) compare(other, row);
  else {
    marked.set(row.seq);
    toast("Marked: choose another call and press X, or Compare");
  }
}

/**
 * The latest earlier call of the same method and name, on the same leg.
 * @param {Row} row
 * @returns {Row | null}
 */
function callBefore(row) {
  const { root } = row;
  const from = roots.lastIndexOf(root);
  for (let index = from - 1; index >= 0 && index > from - 20_000; index -= 1) {
    const other = matching(/** @type {Row} */ (roots[index]), row);
    if (other) return other;
  }
  return null;
}

/** @param {Row} tree @param {Row} row @returns {Row | null} */
function matching(tree, row) {
  if (tree.kind === "call" && tree.leg === row.leg && tree.method === row.method && tree.name === row.name && tree.direction === row.direction) return tree;
  for (const child of tree.children) {
    const found = matching(child, row);
    if (found) return found;
  }
  return null;
}

/**
 * Shows two calls side by side.
 * @param {Row} one the earlier call
 * @param {Row} two
 */
export function compare(one, two) {
  marked.set(null);
  const [first, second] = one.seq <= two.seq ? [one, two] : [two, one];
  dialog("Two calls", () => {
    const place = h("div", { class: "legs two" }, h("p", { class: "muted" }, "Reading the messages…"));
    const part = async (/** @type {number | null} */ seq, /** @type {string[]} */ pointers) => {
      if (seq === null) return null;
      const { text } = await query({ query: "message", seq, all: true });
      const root = text === undefined ? null : read(text);
      if (!root) return null;
      for (const pointer of pointers) {
        const node = locate(text, root, pointer);
        if (node) return pretty(text.slice(node.start, node.end));
      }
      return null;
    };
    Promise.all([first, second].flatMap((row) => [part(row.seq, ["/params/arguments", "/params"]), part(row.last, ["/result", "/error"])])).then(([askedFirst, saidFirst, askedSecond, saidSecond]) => {
      const column = (/** @type {string} */ title, /** @type {string | null | undefined} */ text, /** @type {string | null | undefined} */ other) => h("section", { class: "leg" }, h("h3", null, title),
        typeof text !== "string" ? h("p", { class: "muted" }, "Not kept, or not there yet.") : jsonView(text, { marks: typeof other === "string" ? changes(text, other) : new Map(), label: title }));
      const same = (/** @type {any} */ a, /** @type {any} */ b) => typeof a === "string" && a === b;
      fill(place,
        same(askedFirst, askedSecond) ? h("p", { class: "status ok legs-note" }, icon("check"), "The arguments are the same") : null,
        column(`Arguments at ${clock(first.at).slice(0, 8)}`, askedFirst, askedSecond), column(`Arguments at ${clock(second.at).slice(0, 8)}`, askedSecond, askedFirst),
        same(saidFirst, saidSecond) ? h("p", { class: "status ok legs-note" }, icon("check"), "The results are the same") : null,
        column("Result of the first", saidFirst, saidSecond), column("Result of the second", saidSecond, saidFirst),
        h("p", { class: "muted small legs-note" }, h("span", { class: "swatch changed-swatch" }), "differs from the other call"));
    }, (error) => fill(place, h("p", { class: "error" }, error.message)));
    const cell = (/** @type {(row: Row) => any} */ show) => [h("td", null, show(first)), h("td", null, show(second))];
    const rows = /** @type {[string, (row: Row) => any][]} */ ([["Call", (row) => h("b", null, line(row.name || row.method, 60))], ["At", (row) => clock(row.at)], ["Status", (row) => rowStatus(row)], ["Took", (row) => duration(row.took)], ["Size", (row) => bytes(row.size)], ["Client", (row) => line(row.client || "–", 40)], ["Revision", (row) => row.revision || "–"]]);
    return [
      h("div", { class: "table-scroll compare-facts" }, h("table", { class: "data" }, h("tbody", null, ...rows.map(([label, show]) => h("tr", null, h("th", { scope: "row" }, label), ...cell(show)))))),
      place,
    ];
  }, "wide");
}

/**
 * The places of `text` whose value `other` does not have.
 * @param {string} text
 * @param {string} other
 * @returns {Map<string, string>} class by JSON pointer
 */
export function changes(text, other) {
  const marks = new Map();
  const [a, b] = [read(text), read(other)];
  if (!a || !b) return marks;
  /** @typedef {import("../core/json.js").JsonNode} JsonNode */
  /** @type {(source: string, node: JsonNode) => Map<string, JsonNode>} */
  const members = (source, node) => new Map(node.members.map((member, index) => [member.key ? safeKey(source.slice(member.key.start, member.key.end)) : String(index), member.value]));
  /** @type {(x: JsonNode, y: JsonNode | undefined, pointer: string) => void} */
  const walk = (x, y, pointer) => {
    if (!y || x.kind !== y.kind || (x.members.length === 0 && pretty(text.slice(x.start, x.end)) !== pretty(other.slice(y.start, y.end)))) {
      marks.set(pointer, "changed");
      return;
    }
    const theirs = members(other, y);
    for (const [name, value] of members(text, x)) walk(value, theirs.get(name), `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  };
  walk(a, b, "");
  return marks;
}

/** @param {string} source */
function safeKey(source) {
  try {
    return String(JSON.parse(source));
  } catch {
    return source;
  }
}

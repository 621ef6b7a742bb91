// Turns values into words: sizes, times, counts, and text of servers with its hidden characters made visible.
import { h } from "./dom.js";

/** A string of a server longer than this is cut, with a button that shows the rest. */
export const CUT = 64 * 1024;

// Controls, bidirectional marks, zero-width characters, fillers, tag characters and supplementary variation selectors.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;
const PICTOGRAPH = /\p{Extended_Pictographic}[\u{fe0f}\u{1f3fb}-\u{1f3ff}]*$/u;

/**
 * Splits text into parts that are shown as they are and characters that are shown by their code.
 * @param {string} text
 * @returns {{ text: string, code: string | null }[]}
 */
export function segments(text) {
  /** @type {{ text: string, code: string | null }[]} */
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const at = match.index;
    // A joiner inside an emoji draws one picture and hides nothing.
    if (match[0] === "\u200d" && PICTOGRAPH.test(text.slice(Math.max(0, at - 8), at))) continue;
    if (at > from) parts.push({ text: text.slice(from, at), code: null });
    parts.push({ text: match[0], code: codeOf(match[0]) });
    from = at + match[0].length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), code: null });
  return parts;
}

/** @param {string} character */
function codeOf(character) {
  const point = character.codePointAt(0) ?? 0;
  return `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * Counts the characters that a reader would not see.
 * @param {string} text
 */
export function hiddenCount(text) {
  return segments(text).filter((part) => part.code !== null).length;
}

/**
 * Text of a server as nodes. Hidden characters are boxes with their code, and long text is cut.
 * @param {unknown} value
 * @param {{ limit?: number }} [options]
 * @returns {Node[]}
 */
export function shown(value, options = {}) {
  const text = typeof value === "string" ? value : String(value ?? "");
  const limit = options.limit ?? CUT;
  if (text.length <= limit) return nodes(text);
  const rest = h("span");
  const button = h(
    "button",
    {
      type: "button",
      class: "link",
      onclick: () => {
        rest.replaceChildren(...nodes(text.slice(limit)));
        button.remove();
      },
    },
    `Show all ${bytes(text.length)}`,
  );
  return [...nodes(text.slice(0, limit)), rest, document.createTextNode("… "), button];
}

/**
 * @param {string} text
 * @returns {Node[]}
 */
function nodes(text) {
  return segments(text).map((part) =>
    part.code === null
      ? document.createTextNode(part.text)
      : h("span", { class: "hidden-character", title: `A character that is not visible: ${part.code}` }, part.code),
  );
}

/**
 * Text that the host prepared: its hidden characters are visible already and are counted here.
 * @param {{ text: string, hidden?: number, left_out?: number } | null | undefined} value
 * @returns {Node[]}
 */
export function told(value) {
  if (!value) return [];
  const parts = shown(value.text);
  if (value.hidden) parts.push(h("span", { class: "hidden-note" }, ` ${plural(value.hidden, "hidden character")}`));
  if (value.left_out) parts.push(h("span", { class: "muted small" }, ` … ${bytes(value.left_out)} left out`));
  return parts;
}

/**
 * One line of text of a server for a table cell or a label, as a plain string.
 * @param {unknown} value
 * @param {number} [limit]
 */
export function line(value, limit = 200) {
  const text = typeof value === "string" ? value : String(value ?? "");
  const cut = text.length > limit ? `${text.slice(0, limit)}…` : text;
  return segments(cut.replace(/[\r\n\t]+/g, " "))
    .map((part) => (part.code === null ? part.text : `<${part.code}>`))
    .join("");
}

/** @param {number} count */
export function count(count) {
  return Math.round(count).toLocaleString("en-US");
}

/**
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** @param {number | null | undefined} size */
export function bytes(size) {
  if (size === null || size === undefined) return "";
  if (size < 1000) return `${size} B`;
  if (size < 999_950) return `${(size / 1000).toFixed(size < 9950 ? 1 : 0)} kB`;
  return `${(size / 1_000_000).toFixed(size < 9_950_000 ? 1 : 0)} MB`;
}

/**
 * A duration with three digits at most.
 * @param {number | null | undefined} ms
 */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "";
  if (ms < 0.9995) return `${Math.round(ms * 1000)} µs`;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.995) return `${seconds.toFixed(2)} s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * The time of day, with milliseconds.
 * @param {number} ms since 1970
 */
export function clock(ms) {
  const date = new Date(ms);
  return `${hour(ms)}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/**
 * The time of day in hours and minutes.
 * @param {number} ms since 1970
 */
export function hour(ms) {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** @param {number} number */
function two(number) {
  return String(number).padStart(2, "0");
}

/**
 * Minutes and seconds that remain.
 * @param {number} seconds
 */
export function remaining(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
}

/** @type {Map<string, number>} */
const hues = new Map();

/**
 * Gives the configured servers different hues, as long as there are enough.
 * @param {readonly string[]} names
 */
export function assignHues(names) {
  for (const name of [...names].sort()) if (!hues.has(name)) hues.set(name, (hues.size * 3 + 3) % 8);
}

/**
 * The hue of a server: the same name always has the same one.
 * @param {string} name
 */
export function hue(name) {
  const assigned = hues.get(name);
  if (assigned !== undefined) return assigned;
  let sum = 0;
  for (let index = 0; index < name.length; index += 1) sum = (sum * 31 + name.charCodeAt(index)) >>> 0;
  return sum % 8;
}

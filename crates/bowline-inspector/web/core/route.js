// Hash routes: a URL names a place and never carries data to send.
import { signal } from "./signal.js";

/** @typedef {{ view: string, parts: string[], query: Map<string, string> }} Place */

/**
 * Reads `#/explore/files/tool/write_file` or `#/traffic?f=status:failed`.
 * @param {string} hash
 * @returns {Place}
 */
export function parse(hash) {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const [view = "", ...parts] = path.split("/").filter((part) => part !== "").map(decode);
  /** @type {Map<string, string>} */
  const query = new Map();
  if (mark >= 0) for (const [name, value] of new URLSearchParams(text.slice(mark + 1))) query.set(name, value);
  return { view: view === "" ? "home" : view, parts, query };
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Writes the URL of a place.
 * @param {string} view
 * @param {string[]} [parts]
 * @param {Record<string, string>} [query]
 */
export function format(view, parts = [], query = {}) {
  const path = [view === "home" ? "" : view, ...parts].map(encodeURIComponent).join("/");
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const search = given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  return `#/${path}${search ? `?${search}` : ""}`;
}

/** The place that the page shows. */
export const place = signal(parse(typeof location === "undefined" ? "" : location.hash));

/** Follows the address bar. */
export function follow() {
  addEventListener("hashchange", () => place.set(parse(location.hash)));
}

/**
 * Goes to a place, with an entry in the history.
 * @param {string} url
 */
export function go(url) {
  if (location.hash === url) return;
  location.hash = url;
}

/**
 * Notes a detail of the current place, without an entry in the history.
 * @param {string} url
 */
export function amend(url) {
  history.replaceState(null, "", url);
  place.set(parse(url));
}

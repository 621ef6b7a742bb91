// Key bindings. Single letters never act while a field has the focus, and can be switched off.
import { signal } from "./signal.js";
import { recall, remember } from "./api.js";

/** @typedef {{ keys: string, label: string, run: (event: KeyboardEvent) => void }} Binding */

/** Whether global single keys act (WCAG 2.1.4). */
export const singleKeys = signal(recall("single-keys") !== "off");

/** @param {boolean} on */
export function setSingleKeys(on) {
  singleKeys.set(on);
  remember("single-keys", on ? "on" : "off");
}

export const isMac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

/** The name of the key that starts shortcuts here. */
export const modifier = isMac ? "⌘" : "Ctrl";

/** @type {Binding[]} */
const bindings = [];
let prefix = "";
let prefixAt = 0;

/**
 * Binds keys: `mod+k`, `/`, `g h`.
 * @param {string} keys
 * @param {string} label
 * @param {(event: KeyboardEvent) => void} run
 * @returns {() => void} removes the binding
 */
export function bind(keys, label, run) {
  const binding = { keys, label, run };
  bindings.push(binding);
  return () => {
    const index = bindings.indexOf(binding);
    if (index >= 0) bindings.splice(index, 1);
  };
}

/** The bindings, for the help. */
export function bound() {
  return bindings;
}

/** @param {EventTarget | null} target */
export function isField(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select, [role=textbox], [role=combobox]"));
}

/** @param {KeyboardEvent} event */
export function isModified(event) {
  return isMac ? event.metaKey : event.ctrlKey;
}

/** @param {KeyboardEvent} event */
function handle(event) {
  if (event.defaultPrevented || event.isComposing) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (isModified(event)) {
    run(`mod+${key}`, event);
    return;
  }
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (!singleKeys.peek() || isField(event.target) || document.querySelector("dialog[open]")) return;
  const sequence = prefix && event.timeStamp - prefixAt < 1500 ? `${prefix} ${key}` : key;
  prefix = "";
  if (run(sequence, event)) return;
  if (bindings.some((binding) => binding.keys.startsWith(`${key} `))) {
    prefix = key;
    prefixAt = event.timeStamp;
  }
}

/**
 * @param {string} keys
 * @param {KeyboardEvent} event
 */
function run(keys, event) {
  const binding = bindings.findLast((each) => each.keys === keys);
  if (!binding) return false;
  event.preventDefault();
  binding.run(event);
  return true;
}

/** Listens for the bindings. */
export function listen() {
  addEventListener("keydown", handle);
}

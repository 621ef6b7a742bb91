// Talks to the host: queries read, actions do. Also what this browser remembers.
import { signal } from "./signal.js";

const KEY = "bowline.key";
const GRADE = "bowline.grade";
const SETTING = "bowline.setting.";

/** An answer of the host that is not a success. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {{ error?: string, advice?: string, pointer?: string }} body
   */
  constructor(status, body) {
    super(body.error ?? `the host answered with status ${status}`);
    this.status = status;
    this.advice = body.advice ?? null;
    this.pointer = body.pointer ?? null;
  }
}

/** The key of this browser, or `null`: then nothing but one sentence is shown. */
export const key = signal(stored(KEY));

/** What the key allows: `control` runs tools and answers questions, `view` looks. */
export const grade = signal(/** @type {"view" | "control"} */ (stored(GRADE) === "control" ? "control" : "view"));

/** @param {string} name */
function stored(name) {
  try {
    return globalThis.localStorage?.getItem(name) ?? null;
  } catch {
    return null;
  }
}

/** Forgets the key of this browser. */
export function forgetKey() {
  localStorage.removeItem(KEY);
  localStorage.removeItem(GRADE);
  key.set(null);
}

/**
 * A setting of this browser, such as the theme.
 * @param {string} name
 */
export function recall(name) {
  return stored(SETTING + name);
}

/**
 * @param {string} name
 * @param {string | null} value
 */
export function remember(name, value) {
  try {
    if (value === null) localStorage.removeItem(SETTING + name);
    else localStorage.setItem(SETTING + name, value);
  } catch {
    // The storage is full or switched off: the setting lasts until the page is closed.
  }
}

/**
 * @param {string} path
 * @param {unknown} body a value, or JSON text that is sent as it is
 * @param {AbortSignal} [signal]
 */
async function post(path, body, signal) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key.peek()}` },
    body: typeof body === "string" ? body : JSON.stringify(body),
    cache: "no-store",
    ...(signal ? { signal } : {}),
  });
  if (response.ok) return response.json();
  if (response.status === 401) forgetKey();
  const text = await response.text();
  let reason = {};
  try {
    reason = JSON.parse(text);
  } catch {
    reason = { error: text.slice(0, 500) || `the host answered with status ${response.status}` };
  }
  throw new ApiError(response.status, reason);
}

/**
 * Reads something.
 * @param {Record<string, unknown> | string} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export function query(body, signal) {
  return post("/api/query", body, signal);
}

/**
 * Does something. Needs a key with the grade control.
 * @param {Record<string, unknown> | string} body
 * @returns {Promise<any>}
 */
export function act(body) {
  return post("/api/act", body);
}

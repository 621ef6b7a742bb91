// Reads the stream of events: one connection of JSON lines that resumes where it ended.
import { signal } from "./signal.js";
import { forgetKey, key } from "./api.js";

/** @typedef {"wait" | "live" | "lost" | "gone"} State */

/** Whether the page shows what happens now. */
export const state = signal(/** @type {State} */ ("wait"));

/** The launch of the host that this page belongs to. */
export const run = signal(/** @type {string | null} */ (null));

/** After this many milliseconds without an answer the host counts as gone. */
const GONE_AFTER = 10_000;

/** Whether a hidden tab would like to keep its connection. */
let wanted = () => false;

/**
 * Lets one hidden tab keep its connection while `wants` says so.
 * @param {() => boolean} wants
 */
export function keepWhileHidden(wants) {
  wanted = wants;
}

/**
 * Returns whether this hidden tab is the one that keeps its connection. A Web Lock decides, until the tab is visible again.
 * @returns {Promise<boolean>}
 */
function isKeeper() {
  if (!wanted()) return Promise.resolve(false);
  return new Promise((resolve) => {
    navigator.locks.request("bowline.notifier", { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      if (!lock) return;
      return new Promise((/** @type {(value?: unknown) => void} */ release) => document.addEventListener("visibilitychange", () => release(), { once: true }));
    });
  });
}

/**
 * Reads lines from a stream of bytes.
 * @param {ReadableStream<Uint8Array>} body
 * @param {(line: string) => void} use
 */
export async function lines(body, use) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    let from = 0;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n", from)) {
      if (end > from) use(rest.slice(from, end));
      from = end + 1;
    }
    rest = rest.slice(from);
  }
}

/**
 * Follows the events until the page closes. A hidden tab releases its connection, because a browser opens six per origin.
 * @param {() => number} cursor the number of the last message that the page knows
 * @param {(event: any) => void} use
 * @param {() => void} [restarted] the host was started again, and the key of this page may still open it
 */
export function follow(cursor, use, restarted = () => {}) {
  let attempt = 0;
  let lostAt = 0;
  /** @type {AbortController | null} */
  let abort = null;
  let stopped = false;

  async function connect() {
    if (abort || stopped) return;
    const control = new AbortController();
    abort = control;
    try {
      const response = await fetch(`/api/events?after=${cursor()}`, {
        headers: { Authorization: `Bearer ${key.peek()}` },
        cache: "no-store",
        signal: control.signal,
      });
      if (response.status === 401) {
        stopped = true;
        // A page that had a key of this launch was disconnected; with another launch, the terminal has a new link.
        if (run.peek() !== null && lostAt > 0) state.set("gone");
        else forgetKey();
        return;
      }
      if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
      await lines(response.body, (line) => {
        const event = JSON.parse(line);
        if (typeof event.run === "string") {
          if (run.peek() !== null && run.peek() !== event.run) restarted();
          run.set(event.run);
        }
        attempt = 0;
        lostAt = 0;
        state.set("live");
        use(event);
      });
    } catch {
      // The connection failed or ended: the next attempt follows below.
    } finally {
      abort = null;
    }
    if (stopped || control.signal.aborted) return;
    if (lostAt === 0) lostAt = Date.now();
    state.set(Date.now() - lostAt > GONE_AFTER ? "gone" : "lost");
    attempt += 1;
    if (document.hidden && !wanted()) return;
    setTimeout(connect, Math.min(2000, 150 * 2 ** Math.min(attempt, 5)));
  }

  document.addEventListener("visibilitychange", async () => {
    if (!document.hidden) {
      connect();
      return;
    }
    if ((await isKeeper()) || !document.hidden) return;
    abort?.abort();
    abort = null;
  });
  connect();
}

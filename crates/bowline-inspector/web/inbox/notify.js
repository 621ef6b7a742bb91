// Desktop notifications for questions: off until switched on, sent by one hidden tab, without any text of a server.
import { effect, signal } from "../core/signal.js";
import { recall, remember } from "../core/api.js";
import { inbox } from "../core/model.js";
import { keepWhileHidden } from "../core/stream.js";

/** Whether this browser shows notifications. */
export const notify = signal(recall("notify") === "on");

/** @type {Record<string, string>} */
const KINDS = { start: "may it be started?", call: "a call waits", access: "an access waits", changed: "a tool changed", new: "a new tool", sample: "a model request", sample_result: "an answer of the model", form: "a form", visit: "a page to visit", roots: "folders are asked for" };

/**
 * Switches notifications, with the permission of the browser.
 * @param {boolean} on
 */
export async function setNotify(on) {
  const allowed = on && "Notification" in globalThis && (await Notification.requestPermission()) === "granted";
  notify.set(allowed);
  remember("notify", allowed ? "on" : null);
  return allowed;
}

/** Follows the questions. */
export function start() {
  keepWhileHidden(() => notify.peek());
  const seen = new Set((inbox.peek()?.waiting ?? []).map((question) => question.id));
  effect(() => {
    for (const question of inbox()?.waiting ?? []) {
      if (seen.has(question.id)) continue;
      seen.add(question.id);
      if (!document.hidden || !notify.peek() || Notification.permission !== "granted") continue;
      const shown = new Notification(`${question.server}: ${KINDS[question.asks.kind] ?? "a question"}`, { tag: question.id });
      shown.onclick = () => {
        focus();
        location.hash = `#/inbox/${encodeURIComponent(question.id)}`;
        shown.close();
      };
    }
  });
}

// Inbox: questions that wait for a person, and those that were answered.
import { cleanup, computed, effect, scope } from "../core/signal.js";
import { each, fill, h, icon, show } from "../core/dom.js";
import { format, place } from "../core/route.js";
import { inbox } from "../core/model.js";
import { announce } from "../core/dialog.js";
import { hour, hue, line, plural } from "../core/text.js";
import { notify, setNotify } from "./notify.js";
import { kindWords, question } from "./question.js";

/** @typedef {import("../api").InboxQuestion} InboxQuestion */

/** Renders the view. */
export function inboxView() {
  const waiting = computed(() => inbox()?.waiting ?? []);
  const answered = computed(() => inbox()?.answered ?? []);
  const id = computed(() => place().parts[0] ?? waiting()[0]?.id ?? "");
  const content = h("div", { class: "inbox-detail" });
  let end = () => {};
  let shown = "";
  cleanup(() => end());
  effect(() => {
    const now = id();
    const open = waiting().find((each) => each.id === now) ?? null;
    const closed = answered().find((each) => each.question.id === now) ?? null;
    const stamp = `${now} ${open ? "open" : closed ? "closed" : "none"}`;
    if (stamp === shown && inbox()) return;
    shown = stamp;
    end();
    end = () => {};
    if (open || closed) {
      const [node, dispose] = scope(() => question(/** @type {InboxQuestion} */ (open ?? closed?.question), closed));
      end = dispose;
      fill(content, node);
    } else if (inbox()) fill(content, empty(waiting().length > 0 || place.peek().parts.length > 0));
  });
  let before = waiting.peek().length;
  effect(() => {
    const now = waiting().length;
    if (now > before) announce(`${plural(now, "question")} ${now === 1 ? "waits" : "wait"} for you`);
    before = now;
  });
  return h("div", { class: () => `view inbox${place().parts.length > 0 ? " has-item" : ""}` },
    h("aside", { class: "inbox-list", "aria-label": "Questions" },
      h("div", { class: "inbox-title" }, h("h1", null, "Inbox"), h("span", { class: "muted" }, () => `${waiting().length} waiting`)),
      h("ul", null, each(waiting, (item) => item.id, (item) => row(item, id, null))),
      show(() => answered().length > 0, () => h("h2", { class: "inbox-sub" }, "Answered")),
      h("ul", null, each(answered, (item) => item.question.id, (item) => row(() => item().question, id, item))),
      h("label", { class: "choice notify" }, h("input", { type: "checkbox", checked: () => notify(), onchange: switchNotify }), "Desktop notifications")),
    content);
}

/** @param {Event} event */
async function switchNotify(event) {
  const box = /** @type {HTMLInputElement} */ (event.target);
  box.checked = await setNotify(box.checked);
}

/**
 * @param {() => InboxQuestion} item
 * @param {() => string} chosen
 * @param {(() => import("../api").AnsweredQuestion) | null} answer
 */
function row(item, chosen, answer) {
  const asked = item();
  const outcome = () => {
    const now = answer?.();
    if (!now) return h("span", { class: "muted small number" }, hour(asked.at));
    const [className, name, word] = now.allowed === true ? ["ok", "check", "yes"] : now.allowed === false ? ["error", "cross", "no"] : ["muted", "stop", "ended"];
    return h("span", { class: `status small ${className}` }, icon(name), word);
  };
  return h("li", null, h("a", { class: `inbox-row hue-${hue(asked.server)}`, href: format("inbox", [asked.id]), "aria-current": () => (chosen() === asked.id ? "true" : null) },
    h("span", { class: "mark" }), h("span", { class: "inbox-text" }, h("span", { class: "ellipsis" }, h("b", null, line(asked.server, 40))), h("span", { class: "muted ellipsis small" }, kindWords(asked))), outcome));
}

/** @param {boolean} gone */
function empty(gone) {
  return h("div", { class: "blank" }, icon("inbox"), h("h2", null, gone ? "This question is gone" : "Nothing waits for you"),
    h("p", null, gone ? "It was answered elsewhere, or the call ended." : "Calls that a rule asks about, tools that changed, forms and pages that a server wants you to see, and requests to a model arrive here and in the terminal at the same time."));
}

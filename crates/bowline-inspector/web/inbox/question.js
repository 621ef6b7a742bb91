// One question: what is asked, the server's own words in a box of their own, and buttons that no early click can press.
import { cleanup, computed, effect, signal } from "../core/signal.js";
import { h, icon, show } from "../core/dom.js";
import { act, grade } from "../core/api.js";
import { jsonView, parseExact, stringifyExact } from "../core/json.js";
import { copyButton } from "../core/dialog.js";
import { format } from "../core/route.js";
import * as stream from "../core/stream.js";
import { field } from "../explore/field.js";
import { bytes, clock, hue, line, told } from "../core/text.js";

/** @typedef {import("../api").InboxQuestion} InboxQuestion */
/** @typedef {import("../api").AnsweredQuestion} AnsweredQuestion */

/** Milliseconds that a question has been on screen, in the focused tab, before a button acts. */
const SETTLE = 500;

/** @type {Record<string, string>} */
const SCOPES = { once: "once", run: "until bowline ends", project: "in this project", always: "always" };
/** @type {Record<string, string>} */
const COVERS = { tool: "this tool", read_only_tools: "all read-only tools of the server", server: "everything of the server" };

/** @param {InboxQuestion} item */
export function kindWords(item) {
  const { asks } = item;
  switch (asks.kind) {
    case "start": return "start the server";
    case "call": return `call ${line(asks.tool.text, 60)}`;
    case "access": return `${asks.action === "prompt" ? "get" : "read"} ${line(asks.name.text, 60)}`;
    case "changed": return `${line(asks.tool.text, 60)} changed`;
    case "new": return `new tool ${line(asks.tool.text, 60)}`;
    case "sample": return "ask the model";
    case "sample_result": return "send the model's answer";
    case "form": return "fill in a form";
    case "visit": return "visit a page";
    case "roots": return "send folders";
  }
}

/** @param {InboxQuestion} item */
export function title(item) {
  const name = line(item.server, 60);
  const { asks } = item;
  switch (asks.kind) {
    case "start": return `Use the server ${name}?`;
    case "call": return `Allow this call of ${line(asks.tool.text, 80)}?`;
    case "access": return asks.action === "prompt" ? "Get this prompt?" : "Read this resource?";
    case "changed": return `${line(asks.tool.text, 80)} changed. Use it from now on?`;
    case "new": return `Use the new tool ${line(asks.tool.text, 80)}?`;
    case "sample": return `${name} wants to ask the model`;
    case "sample_result": return `Send this answer of the model to ${name}?`;
    case "form": return `${name} asks you to fill in a form`;
    case "visit": return `${name} asks you to visit a page`;
    case "roots": return `${name} asks for your folders`;
  }
}

/**
 * @param {InboxQuestion} item
 * @param {AnsweredQuestion | null} answered
 */
export function question(item, answered) {
  const { asks } = item;
  const scope = signal(item.scopes[0] ?? "once");
  const covers = signal(item.covers[0] ?? "tool");
  const edit = signal(/** @type {any} */ (asks.kind === "form" ? asks.plan.value : undefined));
  const failure = signal("");
  const sent = signal(false);
  const settled = settle();
  const ready = () => settled() && !sent() && grade() === "control" && stream.state() === "live";
  const cut = leftOut(item);
  // What is not shown is allowed only on purpose.
  const accepted = signal(cut === 0);
  const allowable = () => ready() && accepted();

  /** @param {Record<string, unknown>} answer */
  async function reply(answer) {
    sent.set(true);
    failure.set("");
    try {
      await act(stringifyExact({ action: "answer", question: item.id, answer }));
    } catch (error) {
      failure.set(error instanceof Error ? error.message : String(error));
      sent.set(false);
    }
  }
  const allow = (/** @type {Record<string, unknown>} */ more = {}) => reply({ kind: "allow", scope: scope.peek(), covers: covers.peek(), edit: edit.peek(), ...more });
  const blocked = signal(false);
  const yes = asks.kind === "visit" ? button("Open page", "primary", allowable, () => {
    const { url } = asks.target;
    if (url === undefined || !/^https?:\/\//i.test(url)) {
      allow({ opened: false });
      return;
    }
    // Nobody visited a page that the browser did not open, so that is no yes.
    blocked.set(!openPage(url));
    if (!blocked.peek()) allow({ opened: true });
  }) : button(asks.kind === "form" || asks.kind === "roots" ? "Send" : "Allow", asks.kind === "call" && asks.hints.includes("destructive") ? "danger" : "primary", allowable, () => allow());

  return h("article", { class: `question hue-${hue(item.server)}` },
    h("a", { class: "button quiet only-narrow", href: "#/inbox" }, icon("back"), "All"),
    h("h2", { class: "question-title" }, title(item)),
    h("p", { class: "question-from" }, h("span", { class: "mark" }), " ", h("b", null, line(item.server, 60)), item.client ? [" · called by ", ...told(item.client)] : null, h("span", { class: "muted" }, ` · asked at ${clock(item.at).slice(0, 8)}`),
      item.call === undefined ? null : [" · ", h("a", { href: format("traffic", [String(item.call)]) }, "See it in Traffic")]),
    item.why ? h("p", null, item.why) : null,
    body(item, edit, answered !== null),
    cutNote(item),
    answered ? outcome(answered) : item.terminal_only
      ? h("div", { class: "callout person" }, icon("output"), h("div", null, "Questions that start a program are answered in the terminal only."))
      : h("div", { class: "answer", onkeydown: (/** @type {KeyboardEvent} */ event) => {
        // Enter is ignored here: an answer is a deliberate press of Space or the pointer.
        if (event.key === "Enter") event.preventDefault();
      } },
        item.scopes.length > 1 ? choices("How long", item.scopes, SCOPES, scope) : null,
        item.covers.length > 1 ? choices("What it covers", item.covers, COVERS, covers) : null,
        cut === 0 ? null : h("label", { class: "choice" }, h("input", { type: "checkbox", onchange: (/** @type {Event} */ event) => accepted.set(/** @type {HTMLInputElement} */ (event.target).checked) }), "I allow it without seeing the rest"),
        h("div", { class: "actions" }, yes,
          button(asks.kind === "form" || asks.kind === "visit" ? "Decline" : "Deny", "", ready, () => reply({ kind: "decline", scope: scope.peek() })),
          button("Not now", "quiet", ready, () => reply({ kind: "cancel" }))),
        show(blocked, () => h("div", { class: "callout error", role: "alert" }, icon("alert"), h("div", { class: "stack" }, h("p", null, h("b", null, "The browser did not open the page."), " Nothing was answered. Allow pop-ups of this page and press Open page again, or copy the address, visit it, and say so."),
          h("div", { class: "actions" }, copyButton(() => (asks.kind === "visit" ? (asks.target.url ?? "") : ""), "Copy the address"), button("I visited it", "", allowable, () => allow({ opened: true })))))),
        show(failure, () => h("p", { class: "error", role: "alert" }, icon("alert"), " ", failure))));
}

/**
 * Opens a page in a new tab that cannot reach back. Returns whether the browser did so.
 * @param {string} url
 */
function openPage(url) {
  // With `noopener` the browser would not say whether it opened a tab.
  const tab = open("about:blank", "_blank");
  if (!tab) return false;
  tab.opener = null;
  tab.location.replace(url);
  return true;
}

/**
 * Returns how many bytes of what is asked about are not shown.
 * @param {InboxQuestion} item
 */
function leftOut({ asks }) {
  switch (asks.kind) {
    case "call": return asks.arguments.left_out ?? 0;
    case "new": return asks.definition.left_out ?? 0;
    case "access": return asks.name.left_out ?? 0;
    case "changed": return asks.diff.reduce((sum, each) => sum + (each.text.left_out ?? 0), 0);
    case "visit": return asks.target.text.left_out ?? 0;
    case "start": return asks.description.reduce((sum, each) => sum + (each.left_out ?? 0), 0);
    case "roots": return asks.roots.reduce((sum, each) => sum + (each.left_out ?? 0), 0);
    case "sample": case "sample_result": case "form": return 0;
  }
}

/**
 * Says that the end of what is asked about is not shown.
 * @param {InboxQuestion} item
 */
function cutNote(item) {
  const cut = leftOut(item);
  return cut === 0 ? null : h("p", { class: "status error", role: "alert" }, icon("alert"), ` ${bytes(cut)} at the end are not shown`);
}

/** Becomes true after the question has been on screen in the focused tab for a moment. */
function settle() {
  const since = signal(/** @type {number | null} */ (null));
  const settled = signal(false);
  const start = () => {
    const seen = document.hasFocus() && !document.hidden;
    if (!seen) {
      since.set(null);
      settled.set(false);
    } else if (since.peek() === null) since.set(performance.now());
  };
  const timer = setInterval(() => {
    start();
    const from = since.peek();
    settled.set(from !== null && performance.now() - from >= SETTLE);
  }, 50);
  addEventListener("blur", start);
  addEventListener("focus", start);
  cleanup(() => {
    clearInterval(timer);
    removeEventListener("blur", start);
    removeEventListener("focus", start);
  });
  start();
  return settled;
}

/**
 * A button that acts only if the press, too, happened when it was ready.
 * @param {string} label
 * @param {string} look
 * @param {() => boolean} ready
 * @param {() => void} run
 */
function button(label, look, ready, run) {
  let pressed = false;
  return h("button", {
    type: "button", class: `button ${look}`, "aria-disabled": () => String(!ready()),
    title: () => (grade() === "control" ? "" : "Allow this browser in the terminal of bowline up"),
    onpointerdown: () => {
      pressed = ready();
    },
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === " ") pressed = ready() && !event.repeat;
    },
    onclick: (/** @type {MouseEvent} */ event) => {
      const fine = pressed && ready() && event.isTrusted;
      pressed = false;
      if (fine) run();
    },
  }, label);
}

/**
 * @param {string} label
 * @param {readonly string[]} values
 * @param {Record<string, string>} words
 * @param {import("../core/signal.js").Signal<any>} chosen
 */
function choices(label, values, words, chosen) {
  const name = `c${Math.random().toString(36).slice(2)}`;
  return h("fieldset", { class: "answer-scope" }, h("legend", null, label), h("div", { class: "choices" }, ...values.map((value) =>
    h("label", { class: "choice" }, h("input", { type: "radio", name, checked: () => chosen() === value, onchange: () => chosen.set(value) }), words[value] ?? value))));
}

/** @param {AnsweredQuestion} answered */
function outcome(answered) {
  const who = answered.by === "page" ? "in this page" : answered.by === "terminal" ? "in the terminal" : "by nobody: the call ended";
  const [className, name, word] = answered.allowed === true ? ["ok", "check", "Yes"] : answered.allowed === false ? ["error", "cross", "No"] : ["muted", "stop", "Ended"];
  return h("p", { class: "answered", role: "status" }, h("span", { class: `status ${className}` }, icon(name), h("b", null, word)), h("span", { class: "muted" }, ` answered ${who} at ${clock(answered.at).slice(0, 8)}`));
}

/**
 * @param {InboxQuestion} item
 * @param {import("../core/signal.js").Signal<any>} edit
 * @param {boolean} closed
 * @returns {import("../core/dom.js").Child}
 */
function body(item, edit, closed) {
  const { asks } = item;
  const quote = (/** @type {import("../api").Shown} */ text) => h("figure", { class: "said" }, h("figcaption", { class: "muted small" }, "The server says"), h("blockquote", { class: "quote" }, ...told(text)));
  switch (asks.kind) {
    case "start": return h("div", null, h("p", { class: "muted" }, `Configured in ${line(asks.origin, 200)}`), h("pre", { class: "quote mono" }, ...asks.description.flatMap((each) => [...told(each), "\n"])));
    case "call": return h("div", { class: "stack" },
      asks.title ? quote(asks.title) : null,
      h("div", { class: "tags" }, ...asks.hints.map((hint) => h("span", { class: `tag ${hint === "destructive" ? "error" : ""}` }, hint)), h("span", { class: "muted small" }, asks.hints.length > 0 ? "as the server says" : "The server gives no hints about this tool.")),
      h("h3", null, "Arguments"), jsonView(asks.arguments.text, { label: "Arguments" }));
    case "access": return h("div", { class: "quote mono" }, ...told(asks.name));
    case "changed": return h("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": "What changed" }, ...asks.diff.map((each) => h("span", { class: `diff-${each.change}` }, each.change === "added" ? "+ " : each.change === "removed" ? "- " : "  ", ...told(each.text), "\n")));
    case "new": return jsonView(asks.definition.text, { label: "Definition" });
    case "sample": return editor("Request to the model", asks.request, edit, closed);
    case "sample_result": return editor("Answer of the model", asks.result, edit, closed);
    case "form": {
      const none = computed(() => []);
      return h("div", { class: "stack" }, quote(asks.message), closed ? null : h("form", { class: "call-form", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
        field(asks.plan.root, { get: () => edit(), set: (next) => edit.set(next) }, { pointer: "", root: true, depth: 0, problems: none, touch: () => {}, complete: null })));
    }
    case "visit": {
      const { target } = asks;
      return h("div", { class: "stack" }, quote(asks.message), h("div", { class: "visit" },
        h("div", { class: "visit-host" }, line(target.host ?? "no host", 300)),
        h("code", { class: "visit-url" }, ...told(target.text)),
        ...target.warnings.map((warning) => h("p", { class: "warn status" }, icon("alert"), warning))));
    }
    case "roots": return asks.roots.length === 0 ? h("p", { class: "muted" }, "The list of folders is empty.") : h("ul", { class: "quote mono" }, ...asks.roots.map((root) => h("li", null, ...told(root))));
  }
}

/**
 * JSON that can be edited before it is sent.
 * @param {string} label
 * @param {unknown} value
 * @param {import("../core/signal.js").Signal<any>} edit
 * @param {boolean} closed
 */
function editor(label, value, edit, closed) {
  const problem = signal("");
  const area = h("textarea", { class: "input code", rows: "12", "aria-label": label, readOnly: closed, value: stringifyExact(value, "\n") });
  area.addEventListener("input", () => {
    const next = parseExact(area.value);
    problem.set(next === undefined ? "This is not JSON yet: the request stays as it was" : "");
    if (next !== undefined) edit.set(next);
  });
  effect(() => {
    area.setAttribute("aria-invalid", String(problem() !== ""));
  });
  return h("div", { class: "stack" }, h("h3", null, label), area, h("p", { class: "problem", hidden: () => problem() === "" }, problem));
}

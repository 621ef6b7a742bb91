// The form of one item: fields and JSON are two views of one value, with the errors of the host at their fields.
import { cleanup, computed, effect, signal, untracked } from "../core/signal.js";
import { h, icon, show } from "../core/dom.js";
import { act, grade, query } from "../core/api.js";
import { segmentTabs } from "../core/dialog.js";
import { modifier } from "../core/keys.js";
import { hostNow } from "../core/model.js";
import * as stream from "../core/stream.js";
import { parseExact, stringifyExact } from "../core/json.js";
import { clock, plural } from "../core/text.js";
import { find, updatedAt, version } from "../traffic/store.js";
import { copyCommand, send } from "./explore.js";
import { field } from "./field.js";
import { onEveryRevision } from "../traffic/revisions.js";

/** @typedef {import("../api").FormPlan} FormPlan */
/** @typedef {import("../api").FormProblem} FormProblem */

/** Milliseconds after the last key until the value is checked. */
const PAUSE = 150;
/** Milliseconds that a question is shown before a press confirms it. */
const SETTLE = 500;

/**
 * @param {object} options
 * @param {string} options.server
 * @param {import("../api").Entry} options.entry
 * @param {FormPlan} options.plan
 * @param {import("./explore.js").Memory} options.memory
 * @param {import("../core/signal.js").Signal<number | null>} options.call
 * @param {boolean} [options.short] without the JSON view and the options
 */
export function callForm({ server, entry, plan, memory, call, short = false }) {
  const value = signal(/** @type {any} */ (memory.value === undefined ? plan.value : memory.value));
  const mode = signal("form");
  const text = signal("");
  const textProblem = signal("");
  const problems = signal(/** @type {FormProblem[]} */ ([]));
  const touched = signal(/** @type {Set<string>} */ (new Set()));
  const attempted = signal(false);
  const asking = signal(false);
  let askedAt = 0;
  const failure = signal("");
  /** Grows when the value was changed as a whole, so that the fields are drawn again. */
  const edited = signal(0);
  const hasFields = plan.root.input.kind !== "object" || plan.root.input.fields.length > 0 || plan.root.input.open;
  const destructive = entry.hints.includes("destructive");

  effect(() => {
    memory.value = value();
  });
  let timer = 0;
  let asked = 0;
  effect(() => {
    const now = stringifyExact(value());
    clearTimeout(timer);
    timer = setTimeout(() => check(now), PAUSE);
  });
  cleanup(() => clearTimeout(timer));

  /** @param {string} now */
  async function check(now) {
    asked += 1;
    const mine = asked;
    const head = JSON.stringify({ query: "check", server, kind: entry.kind, name: entry.name });
    try {
      const reply = await query(`${head.slice(0, -1)},"value":${now}}`);
      if (mine === asked) problems.set(reply.problems);
    } catch {
      // A value that cannot be checked can still be sent; the server decides.
      if (mine === asked) problems.set([]);
    }
  }

  const visible = computed(() => {
    const seen = touched();
    return attempted() ? problems() : problems().filter((problem) => seen.has(problem.pointer));
  });
  const row = () => {
    version();
    const now = call();
    return now === null ? null : find(now);
  };
  const running = () => call() !== null && (row() === null || row()?.status === "running");
  const allowed = () => grade() === "control" && stream.state() === "live";

  async function run() {
    failure.set("");
    if (mode.peek() === "json" && textProblem.peek() !== "") return;
    // What was typed a moment ago is not checked yet.
    if (!attempted.peek()) await check(stringifyExact(value.peek()));
    if (!attempted.peek() && problems.peek().length > 0) {
      attempted.set(true);
      return;
    }
    attempted.set(true);
    if (destructive && !asking.peek() && memory.calls.length === 0) {
      asking.set(true);
      askedAt = performance.now();
      return;
    }
    // The second half of a double click is no confirmation.
    if (asking.peek() && performance.now() - askedAt < SETTLE) return;
    asking.set(false);
    try {
      const sent = await send(server, entry.kind, entry.name, value.peek(), { meta: memory.meta, timeout: memory.timeout });
      memory.calls.push({ call: sent, at: Date.now(), value: value.peek() });
      if (memory.calls.length > 20) memory.calls.shift();
      call.set(sent);
    } catch (error) {
      const advice = error instanceof Error && "advice" in error && error.advice ? `. ${error.advice}` : "";
      failure.set(`${error instanceof Error ? error.message : error}${advice}`);
    }
  }

  /** @param {KeyboardEvent} event */
  function keys(event) {
    // A key that is held down runs nothing again, and confirms nothing.
    if (event.key === "Enter" && event.repeat && (event.ctrlKey || event.metaKey || event.target instanceof HTMLButtonElement)) {
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (allowed() && !running()) run();
    }
  }

  const fields = () => field(plan.root, { get: () => value(), set: (next) => value.set(next) }, {
    pointer: "", root: true, problems: visible, depth: 0,
    touch: (pointer) => touched.update((set) => (set.has(pointer) ? set : new Set(set).add(pointer))),
    complete: entry.kind === "prompt" || entry.kind === "template" ? async (argument, typed) => {
      const others = Object.fromEntries(Object.entries(value.peek() ?? {}).filter(([name, each]) => name !== argument && typeof each === "string" && each !== ""));
      const reply = await act({ action: "complete", server, kind: entry.kind, name: entry.name, argument, value: typed, context: others });
      return reply.values;
    } : null,
  });
  const source = () => {
    const area = h("textarea", { class: "input code source", "aria-label": "Arguments as JSON", rows: "8", "aria-invalid": () => String(textProblem() !== ""), value: () => text(),
      oninput: () => {
        const next = parseExact(area.value);
        text.set(area.value);
        textProblem.set(next === undefined ? "This is not JSON yet" : "");
        if (next === undefined) return;
        value.set(next);
        edited.update((n) => n + 1);
      } });
    return h("div", null, area, show(textProblem, () => h("p", { class: "problem" }, icon("alert"), textProblem)),
      () => visible().map((problem) => h("p", { class: "problem" }, icon("alert"), h("code", null, problem.pointer || "/"), " ", problem.message)));
  };
  const stray = () => visible().filter((problem) => problem.pointer === "");

  return h("form", { class: "call-form", onkeydown: keys, onsubmit: (/** @type {Event} */ event) => event.preventDefault(), novalidate: true, autocomplete: "off" },
    short ? null : hasFields ? h("div", { class: "form-head" },
      segmentTabs("Arguments", () => [{ id: "form", label: "Form" }, { id: "json", label: "JSON" }], mode, (next) => {
        if (next === "json") {
          text.set(stringifyExact(value.peek(), "\n"));
          textProblem.set("");
        }
        mode.set(next);
      }),
      show(() => call() !== null && memory.calls.length > 1, () => h("label", { class: "last-calls" }, h("span", { class: "visually-hidden" }, "Arguments of an earlier call"),
        h("select", { class: "input", onchange: (/** @type {Event} */ event) => {
          const chosen = memory.calls[Number(/** @type {HTMLSelectElement} */ (event.target).value)];
          if (!chosen) return;
          value.set(chosen.value);
          edited.update((n) => n + 1);
          text.set(stringifyExact(chosen.value, "\n"));
          call.set(chosen.call);
        } }, () => {
          call();
          return [...memory.calls.keys()].reverse().map((index) => h("option", { value: String(index) }, `Call at ${clock(memory.calls[index]?.at ?? 0).slice(0, 8)}`));
        })))) : h("p", { class: "muted" }, "It takes no arguments."),
    hasFields ? [show(() => mode() === "json", source), h("div", { class: "form-fields", hidden: () => mode() === "json" }, () => {
      edited();
      return untracked(fields);
    })] : null,
    () => (mode() === "form" ? stray().map((problem) => h("p", { class: "problem" }, icon("alert"), problem.message)) : null),
    short ? null : options(memory),
    show(failure, () => h("div", { class: "callout error", role: "alert" }, icon("alert"), h("div", null, failure))),
    changedNote(server, entry, call, () => allowed() && !running(), run),
    show(asking, () => h("div", { class: "callout error" }, icon("alert"), h("div", null, h("b", null, "This tool says that it is destructive."), " Run it?"))),
    h("div", { class: "actions run-actions" },
      show(running, () => h("button", { type: "button", class: "button", disabled: () => !allowed(), onclick: () => {
        const now = call.peek();
        if (now !== null) act({ action: "cancel", call: now }).catch((error) => failure.set(String(error.message ?? error)));
      } }, icon("stop"), "Cancel"), () =>
        h("button", {
          type: "button", class: () => (destructive ? "button danger" : "button primary"), "data-run": true, disabled: () => !allowed(),
          title: () => (grade() === "control" ? "" : "Allow this browser in the terminal of bowline up"), onclick: run,
        }, icon("run"), () => (asking() ? "Yes, run it" : attempted() && problems().length > 0 ? "Run anyway" : entry.kind === "tool" ? "Run" : entry.kind === "prompt" ? "Get" : "Read"), h("kbd", null, `${modifier} Enter`))),
      show(asking, () => h("button", { type: "button", class: "button quiet", onclick: () => asking.set(false) }, "No")),
      short ? null : copyCommand(call),
      short || entry.kind === "template" ? null : h("button", { type: "button", class: "button quiet", disabled: () => !allowed() || running(), title: "Run it once on each revision of the protocol, and compare", onclick: () => {
        const now = value.peek();
        onEveryRevision(entry.label.text, (revision) => send(server, entry.kind, entry.name, now, { meta: memory.meta, timeout: memory.timeout, revision }), destructive);
      } }, "Every revision"),
      subscribeButton(server, entry),
      () => (visible().length > 0 ? h("span", { class: "problem-count" }, plural(visible().length, "problem")) : null)));
}

/**
 * Says that a resource changed after it was read here.
 * @param {string} server
 * @param {import("../api").Entry} entry
 * @param {() => number | null} call
 * @param {() => boolean} ready
 * @param {() => void} read
 */
function changedNote(server, entry, call, ready, read) {
  if (entry.kind !== "resource") return null;
  const opened = hostNow();
  const changed = () => {
    version();
    const at = updatedAt(server, entry.name);
    const now = call();
    const since = now === null ? opened : (find(now)?.at ?? opened);
    return at !== null && at > since ? at : null;
  };
  return show(changed, () => h("div", { class: "callout person", role: "status" }, icon("again"), h("div", null, () => `Changed at ${clock(changed() ?? 0).slice(0, 8)}. `, h("button", { type: "button", class: "link", disabled: () => !ready(), onclick: read }, "Read again"))));
}

/** Which resources this page subscribed to. */
const subscribed = signal(/** @type {Set<string>} */ (new Set()));

/**
 * @param {string} server
 * @param {import("../api").Entry} entry
 */
function subscribeButton(server, entry) {
  if (entry.kind !== "resource") return null;
  const id = JSON.stringify([server, entry.name]);
  const failure = signal("");
  return h("span", { class: "contents" },
    h("button", { type: "button", class: "button quiet", disabled: () => grade() !== "control", "aria-pressed": () => String(subscribed().has(id)), onclick: async () => {
      const on = !subscribed.peek().has(id);
      failure.set("");
      try {
        await act({ action: "subscribe", server, uri: entry.name, on });
        subscribed.update((set) => {
          const next = new Set(set);
          if (on) next.add(id);
          else next.delete(id);
          return next;
        });
      } catch (error) {
        failure.set(error instanceof Error ? error.message : String(error));
      }
    } }, () => (subscribed().has(id) ? "Subscribed: end it" : "Subscribe")),
    show(failure, () => h("span", { class: "error small", role: "alert" }, failure)));
}

/** @param {import("./explore.js").Memory} memory */
function options(memory) {
  const problem = signal("");
  return h("details", { class: "options" }, h("summary", null, "Options: _meta, timeout"),
    h("div", { class: "field" },
      h("label", { for: "option-meta" }, h("code", null, "_meta")),
      h("textarea", { id: "option-meta", class: "input code", rows: "2", placeholder: "{ }", "aria-describedby": "option-meta-problem", value: memory.meta, oninput: (/** @type {Event} */ event) => {
        const area = /** @type {HTMLTextAreaElement} */ (event.target);
        const read = area.value.trim() === "" ? {} : parseExact(area.value);
        const fine = read !== undefined && read !== null && typeof read === "object" && !Array.isArray(read);
        problem.set(fine ? "" : "Write a JSON object");
        memory.meta = fine ? area.value : "";
      } }),
      h("p", { class: "problem", id: "option-meta-problem", hidden: () => problem() === "" }, problem)),
    h("div", { class: "field" },
      h("label", { for: "option-timeout" }, "Timeout in milliseconds"),
      h("input", { id: "option-timeout", class: "input number-input", inputmode: "numeric", value: memory.timeout, placeholder: "of the server", oninput: (/** @type {Event} */ event) => {
        const given = /** @type {HTMLInputElement} */ (event.target).value.trim();
        memory.timeout = /^[1-9]\d{0,8}$/.test(given) ? given : "";
      } })));
}

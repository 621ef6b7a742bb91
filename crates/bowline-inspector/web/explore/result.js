// The latest result of an item: how it ended, what it says, where the time went, and what to do when it failed.
import { cleanup, computed, effect, scope, signal, untracked } from "../core/signal.js";
import { fill, h, icon, show } from "../core/dom.js";
import { query } from "../core/api.js";
import { segmentTabs } from "../core/dialog.js";
import { format } from "../core/route.js";
import { hostNow } from "../core/model.js";
import { jsonView } from "../core/json.js";
import { bytes, count, duration, line, plural, told } from "../core/text.js";
import { find, version } from "../traffic/store.js";
import { taskWord } from "../traffic/task.js";
import { timeBar } from "../traffic/waterfall.js";
import { contentPart, dataTable } from "./content.js";

/** @typedef {import("../api").ResultView} ResultView */

/** @type {Record<string, [string, string, string]>} */
const VERDICTS = {
  running: ["Running", "muted", "clock"],
  done: ["Done", "ok", "check"],
  tool_error: ["The tool reported an error", "error", "cross"],
  rejected: ["The request was rejected", "error", "cross"],
  no_answer: ["No answer", "error", "cross"],
  cancelled: ["Cancelled", "muted", "stop"],
};

/** @param {import("../traffic/store.js").Row} row @returns {number} */
function countOf(row) {
  return row.children.reduce((sum, child) => sum + countOf(child), row.children.length) + (row.last === null ? 0 : 1);
}

/**
 * Follows a call until it ends.
 * @param {() => number | null} call
 */
export function followResult(call) {
  const result = signal(/** @type {ResultView | null} */ (null));
  const problem = signal("");
  const stamp = computed(() => {
    version();
    const now = call();
    const row = now === null ? null : find(now);
    return now === null ? "" : `${now} ${row ? `${row.status} ${countOf(row)} ${row.task?.status} ${row.task?.message}` : ""}`;
  });
  let asked = 0;
  effect(() => {
    stamp();
    const now = untracked(call);
    asked += 1;
    const mine = asked;
    if (now === null) {
      result.set(null);
      return;
    }
    query({ query: "result", call: now }).then(
      (value) => {
        if (mine !== asked) return;
        result.set(value);
        problem.set("");
      },
      (error) => {
        if (mine === asked) problem.set(error instanceof Error ? error.message : String(error));
      },
    );
  });
  return { result, problem };
}

/**
 * @param {object} options
 * @param {string} options.server
 * @param {() => number | null} options.call
 */
export function resultView({ server, call }) {
  const { result, problem } = followResult(call);
  return h("div", { class: "result" },
    show(() => call() === null, () => h("div", { class: "blank small-blank" }, icon("run"), h("h2", null, "No result yet"), h("p", null, "The result of the latest call appears here and stays while you edit."))),
    show(problem, () => h("div", { class: "callout error" }, icon("alert"), h("div", null, problem))),
    show(() => result() !== null, () => resultBody(/** @type {() => ResultView} */ (result), server)));
}

/**
 * @param {() => ResultView} result
 * @param {string} server
 */
export function resultBody(result, server) {
  const tab = signal("shown");
  const tabs = () => {
    const now = result();
    const list = [{ id: "shown", label: "Shown" }];
    if (now.table) list.push({ id: "table", label: "Table" });
    if (now.json !== undefined) list.push({ id: "json", label: "JSON" });
    if (now.response !== undefined) list.push({ id: "sent", label: "As sent" });
    return list;
  };
  const current = () => (tabs().some((each) => each.id === tab()) ? tab() : "shown");
  const body = h("div", { class: "result-body" });
  let end = () => {};
  cleanup(() => end());
  effect(() => {
    const which = current();
    const now = result();
    end();
    const [node, dispose] = scope(() => (which === "table" && now.table ? dataTable(now.table) : which === "json" ? jsonView(now.json ?? "null") : which === "sent" ? sent(now.response ?? 0) : content(now, server)));
    end = dispose;
    fill(body, node);
  });
  const ended = () => result().verdict !== "running";
  return h("div", { class: "contents" },
    h("div", { class: "result-head", role: "status" }, () => headline(result()),
      h("span", { class: "result-figures muted" }, () => [duration(result().took), result().size > 0 ? bytes(result().size) : "", result().tokens > 0 ? `~${count(result().tokens)} tok` : ""].filter(Boolean).map((text) => h("span", null, text)))),
    () => (result().fits_schema === false ? h("div", { class: "callout error" }, icon("alert"), h("div", null, h("b", null, "Where it differs from the output schema"), ...result().problems.slice(0, 20).map((each) => h("div", null, h("code", null, each.pointer || "/"), " ", each.message)))) : null),
    show(() => !ended(), () => progress(result)),
    show(ended, () => h("div", { class: "contents" },
      show(() => tabs().length > 1, () => segmentTabs("Result", tabs, current, (id) => tab.set(id))),
      () => errorBox(result()),
      body,
      () => outputBox(result()))),
    timeSection(result));
}

/** @param {ResultView} result */
function headline(result) {
  const violates = result.verdict === "done" && result.fits_schema === false;
  const [word, className, name] = violates ? ["Done", "error", "alert"] : (VERDICTS[result.verdict] ?? ["Done", "ok", "check"]);
  const code = result.error?.code;
  const extra = result.verdict === "done" && result.fits_schema === true ? ", fits its output schema" : violates ? ", but it violates its output schema" : result.verdict === "rejected" && code !== undefined ? ` (${code})` : "";
  return h("span", { class: `status verdict ${className}` }, icon(name), h("span", null, h("b", null, word), extra));
}

/** @param {ResultView} result */
function errorBox(result) {
  if (!result.error) return null;
  return h("div", { class: "error-box" },
    h("div", { class: "quote" }, ...told(result.error.message)),
    result.error.advice ? h("p", { class: "advice" }, icon("arrow"), result.error.advice) : null,
    result.error.data ? h("details", null, h("summary", null, "Data of the error"), jsonView(result.error.data)) : null);
}

/** @param {ResultView} result */
function outputBox(result) {
  if (result.output.length === 0) return null;
  return h("div", { class: "output-box" }, h("h3", null, "Output of the server"), h("pre", { class: "output", tabindex: "0", role: "region", "aria-label": "Output of the server" }, ...result.output.flatMap((each) => [...told(each), "\n"])));
}

/**
 * @param {ResultView} result
 * @param {string} server
 */
function content(result, server) {
  const parts = result.parts.map((part) => contentPart(part, server));
  const messages = result.messages.map((message) => h("div", { class: "prompt-message" }, h("div", { class: "role" }, ...told(message.role)), contentPart(message.part, server)));
  const all = [...parts, ...messages];
  if (all.length > 0) return h("div", { class: "parts" }, ...all);
  if (result.json !== undefined) return jsonView(result.json);
  return h("p", { class: "muted" }, result.error ? "" : "The result is empty.");
}

/** @param {number} seq */
function sent(seq) {
  const place = h("div", null);
  query({ query: "message", seq, all: true }).then(
    (message) => fill(place, message.text === undefined ? h("p", { class: "muted" }, "The buffer does not keep this message any more.") : jsonView(message.text, { label: "The response as sent" })),
    (error) => fill(place, h("p", { class: "error" }, error.message)),
  );
  return place;
}

/** @param {() => ResultView} result */
function progress(result) {
  const now = signal(hostNow());
  const timer = setInterval(() => now.set(hostNow()), 100);
  cleanup(() => clearInterval(timer));
  const row = () => find(result().call);
  const latest = () => {
    version();
    const top = row();
    if (!top) return 0;
    /** @type {(row: import("../traffic/store.js").Row) => number} */
    const newest = (each) => Math.max(each.at, ...each.children.map(newest));
    return newest(top);
  };
  return h("div", { class: "running" },
    () => {
      const task = result().task;
      return task ? h("p", { class: "running-task" }, h("b", null, "Task "), taskWord(task.status ?? ""), task.message ? h("span", { class: "muted" }, " ", line(task.message, 200)) : null) : null;
    },
    () => {
      const known = result().progress;
      if (!known) return h("progress", { "aria-label": "Running" });
      return [known.total === undefined ? h("progress", { "aria-label": "Running" }) : h("progress", { max: known.total, value: known.progress, "aria-label": "Progress" }),
        h("p", null, known.total === undefined ? count(known.progress) : `${count(known.progress)} of ${count(known.total)}`, known.message ? h("span", { class: "muted" }, " ", ...told(known.message)) : null)];
    },
    h("p", { class: "muted" }, () => {
      const start = row()?.at ?? now();
      const since = latest();
      return `Running for ${duration(Math.max(0, now() - start))}${since > start ? `, last message ${duration(Math.max(0, now() - since))} ago` : ""}`;
    }),
    () => (result().waiting > 0 ? h("p", { class: "status person" }, icon("user"), h("a", { href: "#/inbox" }, `Waiting for you in the Inbox (${plural(result().waiting, "question")})`)) : null));
}

/** @param {() => ResultView} result */
function timeSection(result) {
  return h("div", { class: "time-section" }, () => {
    version();
    const row = find(result().call);
    if (!row) return null;
    return [row.took === null ? null : h("h3", null, "Where the time went"), row.took === null ? null : timeBar(row),
      h("p", null, h("a", { href: format("traffic", [String(row.seq)]), class: "see" }, "See the messages ", icon("arrow")))];
  });
}

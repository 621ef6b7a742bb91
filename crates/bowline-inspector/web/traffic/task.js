// The task that a call became: its status over time, what it asked for, and its end.
import { h, icon, show } from "../core/dom.js";
import { act, grade, query } from "../core/api.js";
import { fail } from "../core/dialog.js";
import { format } from "../core/route.js";
import { inbox } from "../core/model.js";
import { signal } from "../core/signal.js";
import { clock, duration, line, plural } from "../core/text.js";
import { taskStatus } from "./store.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {{ seq: number, at: number, status: string, message: string, method: string }} Step */

/** @type {Record<string, [string, string]>} */
const LOOKS = { running: ["muted", "clock"], done: ["ok", "check"], failed: ["error", "cross"], cancelled: ["muted", "stop"] };

/**
 * @param {string} status
 */
export function taskWord(status) {
  const [state, word] = taskStatus(status);
  const [look, name] = status === "input_required" ? ["person", "user"] : (LOOKS[state] ?? ["muted", "help"]);
  return h("span", { class: `status ${look}` }, icon(name), line(word, 60));
}

/** @param {Row} row */
export function taskTab(row) {
  const steps = signal(/** @type {Step[] | null} */ (null));
  const problem = signal("");
  query({ query: "call", call: row.seq }).then((tree) => steps.set(stepsOf(tree.root, row.task?.id ?? "")), (error) => problem.set(error.message));
  const waiting = () => (inbox()?.waiting ?? []).filter((question) => question.call === row.root.seq);
  // The host waits for the tasks of this page; tasks of other clients are theirs to cancel.
  const mine = row.root.client === "page" && row.root.status === "running";
  return h("div", { class: "stack task-tab" },
    h("dl", { class: "pairs" }, h("dt", null, "Task"), h("dd", null, h("code", null, line(row.task?.id ?? "", 200))), h("dt", null, "Now"), h("dd", null, taskWord(row.task?.status ?? ""), row.task?.message ? h("span", { class: "muted" }, " ", line(row.task.message, 200)) : null)),
    show(() => waiting().length > 0, () => h("p", { class: "status person" }, icon("user"), h("a", { href: format("inbox", [waiting()[0]?.id ?? ""]) }, () => `Waiting for you in the Inbox (${plural(waiting().length, "question")})`))),
    mine ? h("div", { class: "actions" }, h("button", { type: "button", class: "button", disabled: () => grade() !== "control", onclick: () => act({ action: "cancel", call: row.root.seq }).catch(fail) }, icon("stop"), "Cancel the task")) : null,
    show(problem, () => h("p", { class: "error" }, problem)),
    show(steps, () => h("ol", { class: "task-steps" }, () => {
      const list = steps() ?? [];
      const first = list[0]?.at ?? 0;
      return list.map((step) => h("li", null, h("span", { class: "number muted" }, `+${duration(Math.max(0, step.at - first))}`), taskWord(step.status), h("span", { class: "muted task-message" }, line(step.message, 200)),
        h("a", { href: format("traffic", [String(step.seq)]), title: clock(step.at) }, line(step.method.replace("notifications/", ""), 60))));
    })));
}

/**
 * What was said about the task, oldest first; what only repeats the status before is left out.
 * @param {import("../api").CallNode} root
 * @param {string} id of the task at either side of the host
 * @returns {Step[]}
 */
function stepsOf(root, id) {
  /** @type {Step[]} */
  const all = [];
  let onlyOwn = false;
  /** @type {(node: import("../api").CallNode) => void} */
  const visit = (node) => {
    for (const head of [node.head, ...(node.end ? [node.end] : []), ...node.notices]) {
      if (head.task?.status === undefined) continue;
      if (head.task.id === id) onlyOwn = true;
      all.push({ seq: head.seq, at: head.at, status: head.task.status, message: head.task.message ?? "", method: head.method ?? "" });
    }
    node.children.forEach(visit);
  };
  visit(root);
  all.sort((a, b) => a.seq - b.seq);
  return onlyOwn ? all.filter((step, index) => index === 0 || step.status !== all[index - 1]?.status || step.message !== all[index - 1]?.message) : all;
}

// Remembered answers: what was allowed or denied for longer than one call. Each can be forgotten.
import { effect, signal } from "../core/signal.js";
import { h, icon, show } from "../core/dom.js";
import { act, query } from "../core/api.js";
import { fail, toast } from "../core/dialog.js";
import { inbox } from "../core/model.js";
import { hue, line, told } from "../core/text.js";
import { actButton } from "../home/home.js";
import { effectWord } from "./rules.js";

/** Renders the tab. */
export function answers() {
  const list = signal(/** @type {import("../api").AnswersView | null} */ (null));
  const load = () => query({ query: "answers" }).then((reply) => list.set(reply), fail);
  // An answer of the Inbox may be one to remember.
  effect(() => {
    inbox();
    load();
  });
  /** @param {import("../api").AnswerView} answer */
  const row = (answer) => h("tr", { class: `hue-${hue(answer.server)}` },
    h("td", { class: "nowrap" }, effectWord(answer.effect)),
    h("td", { class: "nowrap" }, h("span", { class: "mark" }), " ", line(answer.server, 60)),
    h("td", null, h("code", null, ...told(answer.what)), answer.same_arguments ? h("span", { class: "muted" }, " with the same arguments") : null),
    h("td", null, ...applies(answer)),
    h("td", { class: "number" }, actButton("Forget", "cross", async () => {
      await act({ action: "forget_answer", id: answer.id });
      toast("Forgotten: you are asked again");
      await load();
    }, "button small-button")));
  return h("section", { "aria-label": "Answers" },
    h("p", { class: "muted measure" }, "A yes or no that holds for longer than one call is remembered here. Forget one, and you are asked again."),
    show(list, () => h("div", { class: "stack" }, () => {
      const all = list()?.answers ?? [];
      if (all.length === 0) return h("div", { class: "blank" }, icon("user"), h("h2", null, "No answer is remembered"), h("p", null, "Answers of the Inbox that hold for longer than one call appear here."));
      return [h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Remembered answers" }, h("table", { class: "data framed" },
        h("thead", null, h("tr", null, ...["Answer", "Server", "What", "Applies"].map((title) => h("th", { scope: "col" }, title)), h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Forget")))),
        h("tbody", null, ...all.map(row)))),
      list()?.file ? h("p", { class: "muted small" }, "Lasting answers are stored in ", h("code", null, line(list()?.file ?? "", 300)), ".") : null];
    })));
}

/** @param {import("../api").AnswerView} answer */
function applies(answer) {
  /** @type {(string | Node)[][]} */
  const parts = [answer.this_run ? ["until bowline ends"] : answer.project ? ["in ", h("code", null, ...told(answer.project))] : ["always"]];
  if (answer.user) parts.push(["for ", ...told(answer.user)]);
  if (answer.expires) parts.push([`until ${answer.expires.replace("T", " ").replace(/\.\d+Z$/, " UTC")}`]);
  return parts.flatMap((part, index) => (index === 0 ? part : [", ", ...part]));
}

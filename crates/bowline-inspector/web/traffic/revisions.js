// One call on every revision: how it ends, and what is on the wire, side by side.
import { cleanup, computed, effect, scope, signal } from "../core/signal.js";
import { fill, h, icon, show } from "../core/dom.js";
import { query } from "../core/api.js";
import { dialog, segmentTabs } from "../core/dialog.js";
import { jsonView } from "../core/json.js";
import { format } from "../core/route.js";
import { overview } from "../core/model.js";
import { bytes, duration, line } from "../core/text.js";
import { find, version } from "./store.js";
import { changes } from "./compare.js";
import { rowStatus } from "../home/home.js";

/** @typedef {{ revision: string, call: number | null, problem: string }} Run */

/**
 * Asks whether to run a call on every revision, and shows how each goes.
 * @param {string} name
 * @param {(revision: string) => Promise<number>} send starts the call and returns it
 * @param {boolean} [destructive]
 */
export function onEveryRevision(name, send, destructive = false) {
  const revisions = [...(overview.peek()?.revisions ?? [])].reverse();
  const runs = signal(/** @type {Run[]} */ ([]));
  const [content, dispose] = scope(() => {
    const start = async () => {
      runs.set(revisions.map((revision) => ({ revision, call: null, problem: "" })));
      // One after the other: a program is started for each.
      for (const [index, revision] of revisions.entries()) {
        /** @type {Partial<Run>} */
        let next;
        try {
          next = { call: await send(revision) };
        } catch (error) {
          next = { problem: error instanceof Error ? error.message : String(error) };
        }
        runs.update((list) => list.map((run, at) => (at === index ? { ...run, ...next } : run)));
        if (next.call !== undefined && next.call !== null) await ended(next.call);
      }
    };
    return h("div", { class: "stack" },
      show(() => runs().length === 0, () => h("div", { class: "stack" },
        h("p", null, `This runs ${line(name, 60)} ${revisions.length} times, each over a connection of its own that speaks one revision. A program is started for each.`),
        destructive ? h("p", { class: "status error" }, icon("alert"), "This tool says that it is destructive.") : null,
        h("div", { class: "actions" }, h("button", { type: "button", class: destructive ? "button danger" : "button primary", onclick: start }, icon("run"), `Run ${revisions.length} times`))),
      () => results(runs)));
  });
  dialog(`${line(name, 60)} on every revision`, () => content, "wide", dispose);
}

/**
 * Waits until a call has ended.
 * @param {number} call
 */
function ended(call) {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const row = find(call);
      if (row && row.status === "running") return;
      if (!row) return;
      clearInterval(timer);
      resolve(null);
    }, 50);
  });
}

/** @param {import("../core/signal.js").Signal<Run[]>} runs */
function results(runs) {
  const part = signal("result");
  const [left, right] = [signal(0), signal(1)];
  /** The server's leg of a run. @param {Run | undefined} run */
  const leg = (run) => {
    version();
    const row = run?.call ? find(run.call) : null;
    return row?.children.findLast((child) => child.kind === "call" && child.leg === "server" && child.direction === "out" && child.method === row.method) ?? null;
  };
  /** @param {Run} run */
  const facts = (run) => {
    const row = run.call === null ? null : find(run.call);
    const server = leg(run);
    const state = run.problem ? h("span", { class: "status error" }, icon("cross"), line(run.problem, 200))
      : !row ? h("span", { class: "status muted" }, icon("clock"), "Waits")
      : row.status !== "running" && !server ? h("span", { class: "status muted" }, icon("stop"), "Not spoken, or not reached")
      : rowStatus(row);
    return h("tr", null, h("th", { scope: "row" }, run.revision), h("td", null, state), h("td", { class: "number" }, duration(server?.took ?? null)), h("td", { class: "number" }, server ? bytes(server.size) : ""),
      h("td", null, run.call === null ? null : h("a", { href: format("traffic", [String(run.call)]), onclick: (/** @type {Event} */ event) => /** @type {HTMLElement} */ (event.target).closest("dialog")?.close() }, "See the messages")));
  };
  const choice = (/** @type {string} */ label, /** @type {import("../core/signal.js").Signal<number>} */ chosen) => h("select", { class: "input", "aria-label": label, onchange: (/** @type {Event} */ event) => chosen.set(Number(/** @type {HTMLSelectElement} */ (event.target).value)) },
    ...runs.peek().map((run, index) => h("option", { value: String(index), selected: index === chosen.peek() }, run.revision)));
  const wire = h("div", { class: "legs two revisions-wire" });
  const wanted = computed(() => {
    const list = runs();
    const seq = (/** @type {number} */ index) => {
      const row = leg(list[index]);
      return row ? (part() === "request" ? row.seq : row.last) : null;
    };
    return JSON.stringify([seq(left()), seq(right())]);
  });
  let asked = 0;
  effect(() => {
    const seqs = /** @type {(number | null)[]} */ (JSON.parse(wanted()));
    asked += 1;
    const mine = asked;
    Promise.all(seqs.map(async (seq) => (seq === null ? null : ((await query({ query: "message", seq, all: true })).text ?? null)))).then(([one, two]) => {
      if (mine !== asked) return;
      const column = (/** @type {string | null | undefined} */ text, /** @type {string | null | undefined} */ other, /** @type {string} */ label) => h("section", { class: "leg" },
        typeof text !== "string" ? h("p", { class: "muted" }, "Nothing passed, or it is not there yet.") : jsonView(text, { marks: typeof other === "string" ? changes(text, other) : new Map(), label }));
      fill(wire, column(one, two, "Left"), column(two, one, "Right"));
    }, (error) => fill(wire, h("p", { class: "error" }, error.message)));
  });
  cleanup(() => { asked += 1; });
  return h("div", { class: "stack" },
    h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "How it ended" }, h("table", { class: "data framed revisions" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Revision"), h("th", { scope: "col" }, "Status"), h("th", { scope: "col", class: "number" }, "Server took"), h("th", { scope: "col", class: "number" }, "Size"), h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Messages")))),
      h("tbody", null, () => {
        version();
        return runs().map(facts);
      }))),
    segmentTabs("On the wire", () => [{ id: "request", label: "Request to the server" }, { id: "result", label: "Response" }], part, (id) => part.set(id)),
    h("div", { class: "legs two revision-choice" }, choice("Left revision", left), choice("Right revision", right)),
    wire,
    h("p", { class: "muted small" }, h("span", { class: "swatch changed-swatch" }), "differs from the other revision"));
}

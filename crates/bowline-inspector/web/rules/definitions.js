// Definitions of tools: which ones are as they were accepted, and what changed since.
import { effect, signal } from "../core/signal.js";
import { h, icon, show } from "../core/dom.js";
import { act, query } from "../core/api.js";
import { fail, toast } from "../core/dialog.js";
import { entries } from "../core/model.js";
import { hue, line, plural, told } from "../core/text.js";
import { actButton } from "../home/home.js";

/** @typedef {import("../api").ToolPinView} ToolPinView */

/** @type {Record<string, string>} */
const NOTES = {
  removed: "The server does not list it any more.",
  unknown: "The server has not listed its tools since the start.",
};

/** Renders the tab. */
export function definitions() {
  const list = signal(/** @type {import("../api").PinsView | null} */ (null));
  const load = () => query({ query: "pins" }).then((reply) => list.set(reply), fail);
  effect(() => {
    entries();
    load();
  });
  /** @param {string} server @param {ToolPinView} tool */
  const accept = (server, tool) => actButton("Accept as shown", "check", async () => {
    await act({ action: "accept_pin", server, tool: tool.name, digest: tool.digest });
    toast("Accepted");
    await load();
  });
  return h("section", { "aria-label": "Definitions" },
    h("p", { class: "muted measure" }, "The definition of a tool is what a model reads. It is accepted with the first call, and a call of a tool whose definition changed asks first, so that a server cannot swap its words unnoticed."),
    show(list, () => h("div", { class: "stack" }, () => {
      const groups = (list()?.servers ?? []).filter((group) => group.tools.length > 0);
      if (groups.length === 0) return h("div", { class: "blank" }, icon("check"), h("h2", null, "No definitions yet"), h("p", null, "They appear when a server has listed its tools."));
      const changes = (/** @type {typeof groups[number]} */ group) => group.tools.filter((tool) => tool.state === "changed").length;
      return [...groups].sort((a, b) => changes(b) - changes(a)).map((group) => serverGroup(group, accept));
    })));
}

/**
 * @param {import("../api").ServerPins} group
 * @param {(server: string, tool: ToolPinView) => HTMLElement} accept
 */
function serverGroup({ server, tools }, accept) {
  const of = (/** @type {string} */ state) => tools.filter((tool) => tool.state === state);
  const open = [...of("changed"), ...of("removed"), ...of("unknown")];
  const [same, fresh, changed] = [of("same"), of("new"), of("changed")];
  const names = (/** @type {string} */ title, /** @type {ToolPinView[]} */ list) => (list.length === 0 ? null
    : h("details", { class: "pin-names" }, h("summary", null, `${plural(list.length, "definition")} ${title}`), h("ul", { class: "name-list" }, ...list.map((tool) => h("li", null, h("code", null, ...told(tool.label)))))));
  return h("div", { class: `pin-group hue-${hue(server)}` },
    h("h2", { class: "pin-server" }, h("span", { class: "mark" }), line(server, 60), h("span", { class: "spring" }),
      changed.length > 0 ? h("span", { class: "status warn" }, icon("alert"), `${changed.length} changed`) : h("span", { class: "status ok" }, icon("check"), "Nothing changed")),
    open.length === 0 ? null : h("ul", { class: "pin-list" }, ...open.map((tool) => h("li", null,
      h("div", { class: "pin-head" }, h("code", null, ...told(tool.label)), h("span", { class: `status ${tool.state === "changed" ? "warn" : "muted"}` }, icon(tool.state === "changed" ? "alert" : "stop"), tool.state), h("span", { class: "spring" }),
        tool.state === "changed" && tool.digest ? accept(server, tool) : null),
      tool.diff.length === 0 ? h("p", { class: "muted small" }, NOTES[tool.state] ?? "") : difference(tool.diff)))),
    names("as accepted", same), names("not accepted yet: they are with their first call", fresh));
}

/** @param {readonly import("../api").DiffLine[]} diff */
export function difference(diff) {
  const sign = (/** @type {string} */ change) => (change === "added" ? "+ " : change === "removed" ? "- " : "  ");
  return h("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": "What changed" }, ...diff.map((each) => h("span", { class: `diff-${each.change}` }, sign(each.change), ...told(each.text), "\n")));
}

// The checks of a server: what `bowline doctor` finds, each finding with the messages it is about.
import { cleanup, effect, signal } from "../core/signal.js";
import { h, icon, show } from "../core/dom.js";
import { act, query } from "../core/api.js";
import { changes } from "../core/model.js";
import { format } from "../core/route.js";
import { clock, plural, told } from "../core/text.js";
import { actButton } from "../home/home.js";

/** @type {Record<string, [string, string]>} */
const LEVELS = { error: ["error", "cross"], warning: ["warn", "alert"], hint: ["muted", "help"] };

/** @param {() => string} server */
export function checks(server) {
  const view = signal(/** @type {import("../api").ChecksView | null} */ (null));
  let ended = false;
  cleanup(() => {
    ended = true;
  });
  const load = () => query({ query: "checks", server: server() }).then((reply) => {
    if (!ended) view.set(reply);
  }, () => {});
  effect(() => {
    server();
    changes();
    load();
  });
  const state = () => view()?.state ?? "none";
  return show(() => view()?.is_available, () => h("section", { class: "checks", "aria-labelledby": "checks-title" },
    h("div", { class: "section-head" }, h("h2", { id: "checks-title" }, "Checks"),
      show(() => state() !== "running", () => actButton("Check", "run", async () => {
        await act({ action: "run_checks", server: server() });
        await load();
      }))),
    () => {
      const now = view();
      if (!now || now.state === "none") return h("p", { class: "muted" }, "Runs the checks of ", h("code", null, "bowline doctor"), " over connections of their own, which appear in Traffic.");
      if (now.state === "running") return h("p", { class: "status muted", role: "status" }, icon("clock"), "Running…");
      if (now.problem) return h("div", { class: "callout error" }, icon("alert"), h("div", null, ...told(now.problem)));
      const when = now.at === undefined ? "" : ` at ${clock(now.at).slice(0, 8)}`;
      if (now.findings.length === 0) return h("p", { class: "status ok", role: "status" }, icon("check"), `Nothing to report${when}`);
      return [h("p", { class: "muted", role: "status" }, `${plural(now.findings.length, "finding")}${when}`), h("ul", { class: "finding-list" }, ...now.findings.map(finding))];
    }));
}

/** @param {import("../api").FindingView} found */
function finding(found) {
  const [className, name] = LEVELS[found.level] ?? ["muted", "help"];
  return h("li", { class: `finding ${found.level}` },
    h("div", null, h("span", { class: `status ${className}` }, icon(name), found.level), " ", h("code", { class: "muted" }, found.check)),
    h("div", null, ...told(found.what)),
    found.places.length === 0 ? null : h("div", { class: "muted small" }, ...found.places.slice(0, 10).flatMap((place, index) => [index > 0 ? "; " : "", ...told(place)])),
    h("div", { class: "muted" }, found.advice),
    found.messages.length === 0 ? null : h("div", { class: "actions" }, ...found.messages.slice(0, 5).map((seq) => h("a", { href: format("traffic", [String(seq)]) }, `Message ${seq}`))));
}

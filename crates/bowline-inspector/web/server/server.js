// The page of a server: state, what it says about itself, how it is reached, and its output.
import { computed, effect, signal } from "../core/signal.js";
import { h, icon, show } from "../core/dom.js";
import { act, query } from "../core/api.js";
import { format, place } from "../core/route.js";
import { overview } from "../core/model.js";
import { jsonView } from "../core/json.js";
import { count, duration, hue, line, told } from "../core/text.js";
import { actButton, loginCommand, stateWord } from "../home/home.js";
import { version } from "../traffic/store.js";
import { checks } from "./checks.js";

/** @typedef {import("../api").ServerDetail} ServerDetail */

/** Renders the view. */
export function server() {
  const name = computed(() => place().parts[0] ?? "");
  const detail = signal(/** @type {ServerDetail | null} */ (null));
  const problem = signal("");
  let asked = 0;
  let timer = 0;
  const load = async () => {
    asked += 1;
    const mine = asked;
    try {
      const reply = await query({ query: "server", server: name.peek() });
      if (mine === asked) detail.set(reply);
    } catch (error) {
      if (mine === asked) problem.set(error instanceof Error ? error.message : String(error));
    }
  };
  effect(() => {
    name();
    overview();
    problem.set("");
    load();
  });
  // Output arrives as rows of Traffic.
  effect(() => {
    version();
    clearTimeout(timer);
    timer = setTimeout(load, 400);
  });
  return h("div", { class: "view" }, h("div", { class: () => `page server-page hue-${hue(name())}` },
    h("p", null, h("a", { href: "#/", class: "back-link" }, icon("back"), " Home")),
    show(problem, () => h("div", { class: "callout error" }, icon("alert"), h("div", null, problem))),
    show(detail, () => body(/** @type {() => ServerDetail} */ (detail)))));
}

/** @param {() => ServerDetail} detail */
function body(detail) {
  const summary = () => detail().summary;
  const name = () => summary().name;
  const pair = (/** @type {string} */ label, /** @type {() => any} */ value) => () => {
    const now = value();
    return now === undefined || now === null || now === "" ? null : h("div", { class: "pair" }, h("dt", null, label), h("dd", null, now));
  };
  const running = () => summary().state === "ready" || summary().state === "starting";
  return h("div", { class: "server-body" },
    h("div", { class: "server-head" },
      h("h1", null, h("span", { class: "mark" }), " ", () => line(name(), 80)), () => stateWord(summary().state, summary().login),
      h("span", { class: "spring" }),
      h("div", { class: "actions" },
        h("a", { class: "button", href: format("traffic", [], { f: `server:${name()}` }) }, icon("traffic"), "Traffic"),
        show(() => summary().controllable && running(), () => actButton("Stop", "stop", () => act({ action: "stop", server: name() }))),
        show(() => summary().controllable && !running(), () => actButton("Start", "run", () => act({ action: "start", server: name() }))),
        show(() => summary().controllable, () => actButton("Restart", "again", () => act({ action: "restart", server: name() }))))),
    show(() => summary().reason, () => h("div", { class: "callout error" }, icon("alert"), h("div", { class: "reason-text" }, () => told(summary().reason)))),
    show(() => summary().login, () => h("div", { class: "callout person" }, icon("user"), h("div", { class: "stack" }, h("p", null, "This server wants you to log in. Run this command in a terminal, then press Restart."), loginCommand(() => summary().login ?? "")))),
    h("dl", { class: "facts-list" },
      pair("Reports", () => {
        const { reported_name: reported, reported_version: version } = detail();
        return reported ? [...told(reported), " ", ...told(version)] : null;
      }),
      pair("Speaks", () => summary().revision),
      pair("Reached by", () => (detail().target ? h("code", null, ...told(detail().target)) : null)),
      pair("Tools", () => (summary().tools === undefined ? null : `${count(summary().tools ?? 0)}${summary().tokens === undefined ? "" : `, about ${count(summary().tokens ?? 0)} tokens`}`)),
      pair("Calls", () => `${count(summary().calls)}, ${count(summary().failed)} failed`),
      pair("Starts", () => count(summary().starts)),
      pair("In this state for", () => duration(summary().since))),
    show(() => detail().instructions, () => h("section", null, h("h2", null, "Instructions"), h("blockquote", { class: "quote" }, () => told(detail().instructions)))),
    show(() => detail().capabilities !== undefined, () => h("section", null, h("h2", null, "Capabilities"), () => h("div", { class: "code-box" }, jsonView(JSON.stringify(detail().capabilities ?? {}))))),
    checks(name),
    h("section", null, h("h2", null, "Output"), () => (detail().output.length === 0 ? h("p", { class: "muted" }, "It wrote nothing to its standard error.") : h("pre", { class: "output", tabindex: "0", role: "region", "aria-label": "Output" }, ...detail().output.flatMap((each) => [...told(each), "\n"])))));
}

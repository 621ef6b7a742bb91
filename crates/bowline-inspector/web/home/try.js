// One call to try: a short form of its arguments, and its result below.
import { scope, signal } from "../core/signal.js";
import { h, show } from "../core/dom.js";
import { query } from "../core/api.js";
import { callForm } from "../explore/form.js";
import { memoryOf } from "../explore/explore.js";
import { followResult, resultBody } from "../explore/result.js";
import { entries, needEntries } from "../core/model.js";
import { itemUrl } from "../explore/explore.js";
import { hue, line } from "../core/text.js";

/**
 * @param {import("../api").TryCall} offer
 * @returns {Node}
 */
export function tryForm(offer) {
  needEntries();
  const memory = memoryOf(offer.server, "tool", offer.tool);
  if (memory.value === undefined) memory.value = offer.arguments;
  const call = signal(/** @type {number | null} */ (memory.calls.at(-1)?.call ?? null));
  const place = h("div", null);
  const [node] = scope(() => {
    const { result } = followResult(call);
    return h("div", { class: `try-form hue-${hue(offer.server)}` },
      h("div", { class: "try-name" }, h("span", { class: "mark" }), h("span", { class: "muted" }, `${line(offer.server, 60)} / `), h("a", { href: itemUrl(offer.server, "tool", offer.tool) }, line(offer.tool, 80))),
      place,
      show(() => result() !== null, () => h("div", { class: "try-result" }, resultBody(/** @type {() => import("../api").ResultView} */ (result), offer.server))));
  });
  query({ query: "form", server: offer.server, kind: "tool", name: offer.tool }).then((plan) => {
    const entry = entries.peek()?.servers.find((group) => group.server === offer.server)?.items.find((item) => item.kind === "tool" && item.name === offer.tool) ?? {
      kind: /** @type {const} */ ("tool"), name: offer.tool, label: { text: offer.tool }, gateway_name: offer.tool, hints: [], required: 0, has_output_schema: false, tokens: 0,
    };
    const [form] = scope(() => callForm({ server: offer.server, entry, plan, memory, call, short: true }));
    place.replaceChildren(form);
  }, (error) => {
    place.textContent = error instanceof Error ? error.message : String(error);
  });
  return node;
}

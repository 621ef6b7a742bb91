// The twelve kinds of field. A field reads and sets one part of the value; absent, `null` and empty differ.
import { computed, effect, signal, untracked } from "../core/signal.js";
import { each, h, icon, show } from "../core/dom.js";
import { Exact, parseExact, stringifyExact } from "../core/json.js";
import { bytes, line, told } from "../core/text.js";

/** @typedef {import("../api").Field} Field */
/** @typedef {{ get: () => any, set: (value: any) => void }} Lens `undefined` is an absent value */
/**
 * @typedef {object} Context
 * @property {string} pointer
 * @property {boolean} root
 * @property {number} depth
 * @property {() => import("../api").FormProblem[]} problems
 * @property {(pointer: string) => void} touch
 * @property {((argument: string, typed: string) => Promise<string[]>) | null} complete
 */
/** @typedef {{ field: Field, lens: Lens, context: Context, id: string, described: string }} Part */

let ids = 0;

/** @param {any} value */
function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Exact);
}

/**
 * @param {Lens} lens
 * @param {string} name
 * @returns {Lens}
 */
function member(lens, name) {
  return {
    get() {
      const value = lens.get();
      return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
    },
    set(next) {
      const value = untracked(lens.get);
      const rest = Object.entries(isObject(value) ? value : {});
      const at = rest.findIndex(([key]) => key === name);
      if (next === undefined) rest.splice(at, at < 0 ? 0 : 1);
      else if (at < 0) rest.push([name, next]);
      else rest[at] = [name, next];
      lens.set(Object.fromEntries(rest));
    },
  };
}

/**
 * @param {Lens} lens
 * @param {number} index
 * @returns {Lens}
 */
function item(lens, index) {
  return {
    get() {
      const value = lens.get();
      return Array.isArray(value) ? value[index] : undefined;
    },
    set(next) {
      const value = untracked(lens.get);
      const list = Array.isArray(value) ? [...value] : [];
      list[index] = next === undefined ? null : next;
      lens.set(list);
    },
  };
}

/**
 * @param {Context} context
 * @param {string} name
 * @returns {Context}
 */
function below(context, name) {
  return { ...context, root: false, depth: context.depth + 1, pointer: `${context.pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}` };
}

/** Kinds that are groups of other fields: they have a legend instead of a label. */
const GROUPS = new Set(["object", "list", "map", "one_of", "several"]);

/**
 * Draws a field.
 * @param {Field} plan
 * @param {Lens} lens
 * @param {Context} context
 * @returns {HTMLElement}
 */
export function field(plan, lens, context) {
  if (context.root && plan.input.kind === "object") return objectFields(plan.input, lens, context);
  ids += 1;
  const id = `field-${ids}`;
  const described = `${id}-more`;
  const touching = {
    get: lens.get,
    set: (/** @type {any} */ value) => {
      context.touch(context.pointer);
      lens.set(value);
    },
  };
  const part = { field: plan, lens: touching, context, id, described };
  const group = GROUPS.has(plan.input.kind);
  const own = () => context.problems().filter((problem) => problem.pointer === context.pointer);
  const isNull = () => lens.get() === null;
  const label = [told(plan.label), plan.required ? h("span", { class: "required", title: "required" }, " *") : null];
  const state = h("span", { class: "field-state" },
    show(() => plan.nullable && !isNull(), () => h("button", { type: "button", class: "field-action", onclick: () => touching.set(null) }, "null")),
    show(() => !plan.required && lens.get() !== undefined, () => h("button", { type: "button", class: "field-action", title: "Do not send this member", onclick: () => touching.set(undefined) }, "Leave out")),
    () => (lens.get() === undefined ? (plan.required ? "" : h("span", { class: "muted" }, "not sent")) : isNull() ? h("span", { class: "tag" }, "null") : lens.get() === "" ? h("span", { class: "tag" }, "empty text") : ""));
  const more = h("div", { id: described, class: "field-more" },
    plan.description ? h("p", { class: "field-help" }, ...told(plan.description)) : null,
    () => own().map((problem) => h("p", { class: "problem" }, icon("alert"), problem.message)));
  const control = KINDS[plan.input.kind]?.(part) ?? json(part);
  return group
    ? h("fieldset", { class: `field group kind-${plan.input.kind}`, "aria-describedby": described }, h("legend", { class: "field-label" }, h("span", null, label), state), more, control)
    : h("div", { class: `field kind-${plan.input.kind}` }, h("div", { class: "field-label" }, h("label", { for: id }, label), state), control, more);
}

/**
 * @param {Part} part
 * @returns {Record<string, any>}
 */
function common({ field: plan, context, id, described }) {
  return {
    id, "aria-describedby": described, "aria-required": plan.required ? "true" : null, autocomplete: "off", spellcheck: "false",
    "aria-invalid": () => String(context.problems().some((problem) => problem.pointer === context.pointer)),
  };
}

/** @param {any} value */
function asText(value) {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  return value instanceof Exact ? value.text : stringifyExact(value);
}

/** @param {Field} plan */
function placeholder(plan) {
  if (plan.default !== undefined && plan.default !== null) return `default: ${line(typeof plan.default === "string" ? plan.default : JSON.stringify(plan.default), 60)}`;
  return plan.input.kind === "text" && plan.input.example ? line(plan.input.example, 60) : "";
}

/** @param {Part} part */
function text(part) {
  const { field: plan, lens, context } = part;
  const input = /** @type {Extract<Field["input"], { kind: "text" }>} */ (plan.input);
  const list = `${part.id}-list`;
  const values = signal(/** @type {string[]} */ ([]));
  let asked = 0;
  const suggest = async (/** @type {string} */ typed) => {
    if (!context.complete) return;
    asked += 1;
    const mine = asked;
    try {
      const found = await context.complete(plan.name, typed);
      if (mine === asked) values.set(found.slice(0, 50));
    } catch {
      // The server offers no completion for this argument.
      context.complete = null;
    }
  };
  return h("span", { class: "contents" },
    h("input", { ...common(part), class: "input", type: input.secret ? "password" : "text", placeholder: placeholder(plan), list: context.complete ? list : null,
      value: () => asText(lens.get()),
      onfocus: () => suggest(asText(untracked(lens.get))),
      oninput: (/** @type {Event} */ event) => {
        const typed = /** @type {HTMLInputElement} */ (event.target).value;
        lens.set(typed);
        suggest(typed);
      } }),
    context.complete ? h("datalist", { id: list }, () => values().map((value) => h("option", { value: line(value, 200) }))) : null);
}

/** @param {Part} part */
function longText(part) {
  return h("textarea", { ...common(part), class: "input", rows: "4", placeholder: placeholder(part.field), value: () => asText(part.lens.get()),
    oninput: (/** @type {Event} */ event) => part.lens.set(/** @type {HTMLTextAreaElement} */ (event.target).value) });
}

/** @param {Part} part */
function number(part) {
  const input = /** @type {Extract<Field["input"], { kind: "number" }>} */ (part.field.input);
  const range = [input.minimum === undefined ? null : `at least ${input.minimum}`, input.maximum === undefined ? null : `at most ${input.maximum}`].filter(Boolean).join(", ");
  return h("input", { ...common(part), class: "input number-input", inputmode: input.integer ? "numeric" : "decimal", placeholder: placeholder(part.field) || range, value: () => asText(part.lens.get()),
    oninput: (/** @type {Event} */ event) => {
      const typed = /** @type {HTMLInputElement} */ (event.target).value.trim();
      const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(typed);
      part.lens.set(typed === "" ? undefined : isNumber ? new Exact(typed) : typed);
    } });
}

/** @param {Part} part */
function toggle(part) {
  const { lens } = part;
  return h("label", { class: "choice" },
    h("input", { ...common(part), type: "checkbox", checked: () => lens.get() === true, indeterminate: () => lens.get() === null,
      onchange: (/** @type {Event} */ event) => lens.set(/** @type {HTMLInputElement} */ (event.target).checked) }),
    () => (typeof lens.get() === "boolean" ? String(lens.get()) : h("span", { class: "muted" }, lens.get() === null ? "null" : "not set")));
}

/**
 * @param {any} a
 * @param {any} b
 */
function same(a, b) {
  return a !== undefined && stringifyExact(a) === stringifyExact(b);
}

/** @param {Part} part */
function choice(part) {
  const { lens, field: plan } = part;
  const { choices } = /** @type {Extract<Field["input"], { kind: "choice" }>} */ (plan.input);
  const short = choices.length <= 4 && choices.every((each) => each.label.text.length <= 18);
  if (short) {
    return h("div", { class: "choices", role: "radiogroup", "aria-labelledby": null, "aria-label": line(plan.label.text, 60), id: part.id, tabindex: "-1" }, ...choices.map((each) =>
      h("label", { class: "choice" }, h("input", { type: "radio", name: part.id, checked: () => same(lens.get(), each.value), onchange: () => lens.set(each.value) }), ...told(each.label))));
  }
  return h("select", { ...common(part), class: "input", onchange: (/** @type {Event} */ event) => {
    const index = Number(/** @type {HTMLSelectElement} */ (event.target).value);
    lens.set(index < 0 ? undefined : choices[index]?.value);
  } },
    h("option", { value: "-1", selected: () => !choices.some((each) => same(lens.get(), each.value)) }, plan.required ? "Choose…" : "Not sent"),
    ...choices.map((each, index) => h("option", { value: String(index), selected: () => same(lens.get(), each.value) }, line(each.label.text, 120))));
}

/** @param {Part} part */
function several(part) {
  const { lens } = part;
  const { choices } = /** @type {Extract<Field["input"], { kind: "several" }>} */ (part.field.input);
  const list = () => /** @type {any[]} */ (Array.isArray(lens.get()) ? lens.get() : []);
  return h("div", { class: "choices" }, ...choices.map((each) =>
    h("label", { class: "choice" }, h("input", { type: "checkbox", checked: () => list().some((value) => same(value, each.value)),
      onchange: (/** @type {Event} */ event) => {
        const on = /** @type {HTMLInputElement} */ (event.target).checked;
        const others = untracked(list).filter((value) => !same(value, each.value));
        lens.set(on ? [...others, each.value] : others);
      } }), ...told(each.label))));
}

/** @param {Part} part */
function dateTime(part) {
  const { format } = /** @type {Extract<Field["input"], { kind: "date_time" }>} */ (part.field.input);
  const both = format === "date-time";
  const local = (/** @type {string} */ value) => {
    const date = new Date(value);
    if (Number.isNaN(date.getTime())) return "";
    return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  };
  return h("input", { ...common(part), class: "input date-input", type: both ? "datetime-local" : format === "time" ? "time" : "date", step: format === "date" ? null : "1",
    value: () => (both ? local(asText(part.lens.get())) : asText(part.lens.get()).replace(/(Z|[+-]\d\d:\d\d)$/, "")),
    onchange: (/** @type {Event} */ event) => {
      const given = /** @type {HTMLInputElement} */ (event.target).value;
      if (given === "") part.lens.set(undefined);
      // RFC 3339 wants an offset: the time of this browser is sent in UTC.
      else part.lens.set(both ? new Date(given).toISOString().replace(/\.000Z$/, "Z") : format === "time" ? `${given.length === 5 ? `${given}:00` : given}Z` : given);
    } });
}

/** @param {Part} part */
function file(part) {
  const { mime } = /** @type {Extract<Field["input"], { kind: "file" }>} */ (part.field.input);
  const note = signal("");
  return h("div", { class: "file" },
    h("input", { ...common(part), type: "file", accept: mime ?? null, onchange: async (/** @type {Event} */ event) => {
      const chosen = /** @type {HTMLInputElement} */ (event.target).files?.[0];
      if (!chosen) return;
      if (chosen.size > 2_900_000) {
        note.set("The file is too large: a request has at most 4 MB, as base64");
        return;
      }
      const data = new Uint8Array(await chosen.arrayBuffer());
      let binary = "";
      for (let at = 0; at < data.length; at += 0x8000) binary += String.fromCharCode(...data.subarray(at, at + 0x8000));
      note.set("");
      part.lens.set(btoa(binary));
    } }),
    h("span", { class: "muted small" }, () => note() || (typeof part.lens.get() === "string" ? `${bytes(Math.floor((part.lens.get().length * 3) / 4))}, sent as base64` : "")));
}

/** @param {Part} part */
function list(part) {
  const { lens, context, field: plan } = part;
  const input = /** @type {Extract<Field["input"], { kind: "list" }>} */ (plan.input);
  const values = () => /** @type {any[]} */ (Array.isArray(lens.get()) ? lens.get() : []);
  const length = computed(() => values().length);
  return h("div", { class: "list" },
    each(() => Array.from({ length: length() }, (_, index) => index), (index) => index, (at) => {
      const index = at();
      return h("div", { class: "list-row" }, h("span", { class: "list-index muted small" }, String(index + 1)),
        field({ ...input.item, required: true, label: input.item.label.text ? input.item.label : { text: `Item ${index + 1}` } }, item(lens, index), below(context, String(index))),
        h("button", { type: "button", class: "button quiet square", "aria-label": `Remove item ${index + 1}`, title: "Remove", onclick: () => lens.set(untracked(values).filter((_, other) => other !== index)) }, icon("cross")));
    }),
    h("button", { type: "button", class: "button quiet add", disabled: () => input.max_items !== undefined && length() >= input.max_items, onclick: () => lens.set([...untracked(values), start(input.item)]) }, icon("plus"), "Add an item"));
}

/**
 * The value with which an added item starts.
 * @param {Field} plan
 * @returns {any}
 */
function start(plan) {
  if (plan.default !== undefined) return plan.default;
  switch (plan.input.kind) {
    case "object":
    case "map": return {};
    case "list":
    case "several": return [];
    case "switch": return false;
    case "choice": return plan.input.choices[0]?.value ?? null;
    case "one_of": {
      const first = plan.input.variants[0];
      return first ? { ...(isObject(first.fixed) ? /** @type {object} */ (first.fixed) : {}) } : {};
    }
    case "number": return new Exact("0");
    case "json": return null;
    default: return "";
  }
}

/** @param {Part} part */
function map(part) {
  const { lens, context, field: plan } = part;
  const input = /** @type {Extract<Field["input"], { kind: "map" }>} */ (plan.input);
  const names = () => (isObject(lens.get()) ? Object.keys(lens.get()) : []);
  const name = h("input", { class: "input", "aria-label": "Name of the new member", placeholder: "name", autocomplete: "off" });
  const add = () => {
    if (name.value === "" || untracked(names).includes(name.value)) return;
    member(lens, name.value).set(start(input.value));
    name.value = "";
  };
  return h("div", { class: "list" },
    each(names, (key) => key, (key) => {
      const own = key();
      return h("div", { class: "list-row" },
        field({ ...input.value, required: true, name: own, label: { text: line(own, 120) } }, member(lens, own), below(context, own)),
        h("button", { type: "button", class: "button quiet square", "aria-label": `Remove ${line(own, 60)}`, title: "Remove", onclick: () => member(lens, own).set(undefined) }, icon("cross")));
    }),
    h("div", { class: "map-add" }, name, h("button", { type: "button", class: "button quiet", onclick: add }, icon("plus"), "Add a member")));
}

/**
 * @param {Extract<Field["input"], { kind: "object" }>} input
 * @param {Lens} lens
 * @param {Context} context
 */
function objectFields(input, lens, context) {
  const known = new Set(input.fields.map((each) => each.name));
  const extra = () => (isObject(lens.get()) ? Object.keys(lens.get()).filter((name) => !known.has(name)) : []);
  return h("div", { class: "fields" }, ...input.fields.map((each) => field(each, member(lens, each.name), below(context, each.name))),
    // Members that the schema does not name stay visible, so nothing is sent that nobody sees.
    each(extra, (name) => name, (name) => {
      const own = name();
      return field({ name: own, label: { text: line(own, 120) }, required: false, nullable: true, input: { kind: "json", why: "is not in the schema" } }, member(lens, own), below(context, own));
    }));
}

/** @param {Part} part */
function object(part) {
  const input = /** @type {Extract<Field["input"], { kind: "object" }>} */ (part.field.input);
  return show(() => part.field.required || part.lens.get() !== undefined,
    () => objectFields(input, part.lens, part.context),
    () => h("button", { type: "button", class: "button quiet add", onclick: () => part.lens.set({}) }, icon("plus"), "Add"));
}

/** @param {Part} part */
function oneOf(part) {
  const { lens, context, field: plan } = part;
  const { variants, selected } = /** @type {Extract<Field["input"], { kind: "one_of" }>} */ (plan.input);
  const chosen = signal(guess(untracked(lens.get), variants, selected));
  /** What each variant held, so that going back loses nothing. @type {Map<number, any>} */
  const held = new Map();
  const choose = (/** @type {number} */ next) => {
    const variant = variants[next];
    if (!variant || next === chosen.peek()) return;
    held.set(chosen.peek(), untracked(lens.get));
    const before = held.get(next);
    const empty = { ...variant.field, default: undefined };
    lens.set(before !== undefined ? before : isObject(variant.fixed) ? { .../** @type {object} */ (variant.fixed) } : start(empty));
    chosen.set(next);
  };
  const head = variants.length <= 4
    ? h("div", { class: "segments wrap", role: "group", "aria-label": "Shape" }, ...variants.map((variant, index) => h("button", { type: "button", "aria-pressed": () => String(chosen() === index), onclick: () => choose(index) }, ...told(variant.label))))
    : h("select", { class: "input", "aria-label": "Shape", onchange: (/** @type {Event} */ event) => choose(Number(/** @type {HTMLSelectElement} */ (event.target).value)) },
      ...variants.map((variant, index) => h("option", { value: String(index), selected: () => chosen() === index }, line(variant.label.text, 120))));
  const body = () => {
    const variant = variants[chosen()];
    if (!variant) return null;
    return untracked(() => {
      if (variant.field.input.kind !== "object") return field({ ...variant.field, required: true }, lens, { ...context, root: false });
      const fixed = isObject(variant.fixed) ? Object.keys(/** @type {object} */ (variant.fixed)) : [];
      const input = { ...variant.field.input, fields: variant.field.input.fields.filter((each) => !fixed.includes(each.name)) };
      const rest = { get: () => without(lens.get(), fixed), set: (/** @type {any} */ next) => lens.set({ .../** @type {object} */ (isObject(variant.fixed) ? variant.fixed : {}), ...next }) };
      return objectFields(input, rest, context);
    });
  };
  return h("div", { class: "one-of" }, head, h("div", { class: "one-of-body" }, body));
}

/**
 * @param {any} value
 * @param {string[]} names
 */
function without(value, names) {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));
}

/**
 * @param {any} value
 * @param {import("../api").Variant[]} variants
 * @param {number} fallback
 */
function guess(value, variants, fallback) {
  if (value === undefined) return fallback;
  const at = variants.findIndex((variant) => {
    if (isObject(variant.fixed)) return isObject(value) && Object.entries(/** @type {object} */ (variant.fixed)).every(([name, fixed]) => Object.hasOwn(value, name) && same(value[name], fixed));
    const kind = variant.field.input.kind;
    if (kind === "object") return isObject(value) && variant.field.input.fields.filter((each) => each.required).every((each) => Object.hasOwn(value, each.name));
    if (kind === "map") return isObject(value);
    if (kind === "number") return typeof value === "number" || value instanceof Exact;
    if (kind === "switch") return typeof value === "boolean";
    if (kind === "list" || kind === "several") return Array.isArray(value);
    return typeof value === "string";
  });
  return at < 0 ? fallback : at;
}

/** @param {Part} part */
function json(part) {
  const { lens } = part;
  const problem = signal("");
  const input = /** @type {{ kind: "json", why: string }} */ (part.field.input);
  let written = "";
  const area = h("textarea", { ...common(part), class: "input code", rows: "3", placeholder: "JSON" });
  effect(() => {
    const value = lens.get();
    const now = value === undefined ? "" : stringifyExact(value, "\n");
    const same = written !== "" && parseExact(written) !== undefined && stringifyExact(parseExact(written)) === stringifyExact(value);
    if (!same && problem.peek() === "") area.value = now;
  });
  area.addEventListener("input", () => {
    written = area.value;
    const value = area.value.trim() === "" ? undefined : parseExact(area.value);
    problem.set(value === undefined && area.value.trim() !== "" ? "This is not JSON yet" : "");
    if (problem.peek() === "") lens.set(value);
  });
  return h("div", null, area, h("p", { class: "muted small" }, `As JSON: ${line(input.why, 120)}`), h("p", { class: "problem", hidden: () => problem() === "" }, problem));
}

/** @type {Record<string, (part: Part) => any>} */
const KINDS = { text, long_text: longText, number, switch: toggle, choice, several, date_time: dateTime, file, list, map, object, one_of: oneOf, json };

// Shows JSON as it was sent: a reader that keeps the source text, so long numbers, double keys and odd escapes stay visible.
import { h } from "./dom.js";
import { bytes, plural, segments } from "./text.js";

/**
 * @typedef {object} JsonNode
 * @property {"object" | "array" | "string" | "number" | "literal"} kind
 * @property {number} start
 * @property {number} end
 * @property {{ key: JsonNode | null, value: JsonNode }[]} members
 */

const MAX_DEPTH = 512;

/**
 * Reads JSON into a tree of places in the text. Returns `null` for text that is not JSON.
 * @param {string} text
 * @returns {JsonNode | null}
 */
export function read(text) {
  let at = 0;
  const space = () => {
    while (at < text.length && " \t\r\n".includes(/** @type {string} */ (text[at]))) at += 1;
  };
  /** @returns {JsonNode | null} */
  const string = () => {
    const start = at;
    at += 1;
    while (at < text.length) {
      const character = text[at];
      if (character === "\\") at += 2;
      else if (character === '"') {
        at += 1;
        return { kind: "string", start, end: at, members: [] };
      } else at += 1;
    }
    return null;
  };
  /**
   * @param {number} depth
   * @returns {JsonNode | null}
   */
  const value = (depth) => {
    if (depth > MAX_DEPTH) return null;
    space();
    const start = at;
    const first = text[at];
    if (first === '"') return string();
    if (first === "{" || first === "[") {
      const close = first === "{" ? "}" : "]";
      /** @type {JsonNode} */
      const node = { kind: first === "{" ? "object" : "array", start, end: start, members: [] };
      at += 1;
      space();
      if (text[at] === close) {
        at += 1;
        node.end = at;
        return node;
      }
      for (;;) {
        let key = null;
        if (first === "{") {
          space();
          if (text[at] !== '"') return null;
          key = string();
          if (!key) return null;
          space();
          if (text[at] !== ":") return null;
          at += 1;
        }
        const member = value(depth + 1);
        if (!member) return null;
        node.members.push({ key, value: member });
        space();
        const next = text[at];
        at += 1;
        if (next === close) {
          node.end = at;
          return node;
        }
        if (next !== ",") return null;
      }
    }
    const match = /(?:true|false|null)|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
    match.lastIndex = at;
    const found = match.exec(text);
    if (!found) return null;
    at = match.lastIndex;
    return { kind: /[tfn]/.test(found[0][0] ?? "") ? "literal" : "number", start, end: at, members: [] };
  };
  const root = value(0);
  space();
  return root && at === text.length ? root : null;
}

/**
 * Writes JSON with one member per line. Numbers, keys and strings keep their source text.
 * @param {string} text
 * @returns {string} the text itself if it is not JSON
 */
export function pretty(text) {
  const root = read(text);
  if (!root) return text;
  /** @type {(node: JsonNode, indent: string) => string} */
  const write = (node, indent) => {
    if (node.members.length === 0) return node.kind === "object" ? "{}" : node.kind === "array" ? "[]" : text.slice(node.start, node.end);
    const inner = `${indent}  `;
    const lines = node.members.map(
      ({ key, value }) => inner + (key ? `${text.slice(key.start, key.end)}: ` : "") + write(value, inner),
    );
    return node.kind === "object" ? `{\n${lines.join(",\n")}\n${indent}}` : `[\n${lines.join(",\n")}\n${indent}]`;
  };
  return write(root, "");
}

/**
 * Finds a place by JSON pointer.
 * @param {string} text
 * @param {JsonNode} root
 * @param {string} pointer
 * @returns {JsonNode | null}
 */
export function locate(text, root, pointer) {
  let node = root;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    const member =
      node.kind === "array"
        ? node.members[Number(name)]
        : node.members.findLast(({ key }) => key && keyText(text, key) === name);
    if (!member) return null;
    node = member.value;
  }
  return node;
}

/**
 * @param {string} text
 * @param {JsonNode} key
 */
function keyText(text, key) {
  try {
    return String(JSON.parse(text.slice(key.start, key.end)));
  } catch {
    return text.slice(key.start + 1, key.end - 1);
  }
}

/** A number with its source text, so that editing arguments changes no digit of it. */
export class Exact {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/**
 * Reads JSON into values whose numbers keep their text. Of double keys the last one counts.
 * @param {string} text
 * @returns {any} `undefined` if the text is not JSON
 */
export function parseExact(text) {
  const root = read(text);
  if (!root) return undefined;
  /** @type {(node: JsonNode) => any} */
  const build = (node) => {
    if (node.kind === "array") return node.members.map((member) => build(member.value));
    if (node.kind === "object") {
      return Object.fromEntries(node.members.map((member) => [member.key ? keyText(text, member.key) : "", build(member.value)]));
    }
    const source = text.slice(node.start, node.end);
    return node.kind === "number" ? new Exact(source) : JSON.parse(source);
  };
  try {
    return build(root);
  } catch {
    return undefined;
  }
}

/**
 * Writes values of `parseExact`. Members that are `undefined` are left out.
 * @param {any} value
 * @param {string} [indent]
 * @returns {string}
 */
export function stringifyExact(value, indent = "") {
  if (value instanceof Exact) return value.text;
  if (value === undefined) return "null";
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const list = Array.isArray(value);
  const members = list ? value.map((each) => stringifyExact(each, indent && `${indent}  `)) : Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([name, member]) => `${JSON.stringify(name)}:${indent ? " " : ""}${stringifyExact(member, indent && `${indent}  `)}`);
  const [open, close] = list ? ["[", "]"] : ["{", "}"];
  if (members.length === 0) return open + close;
  // The first character of `indent` is the line break.
  return indent ? `${open}${indent}  ${members.join(`,${indent}  `)}${indent}${close}` : open + members.join(",") + close;
}

/** How many members of one object or list are drawn before a button asks for more. */
const PAGE = 200;
/** Objects nested deeper than this start closed, unless all lines are few enough to be read at once. */
const OPEN_DEPTH = 3;
const FEW_LINES = 60;
const LONG_STRING = 2000;

/**
 * Shows JSON text as a tree that opens and closes. Text that is not JSON is shown as it is.
 * @param {string} text
 * @param {{ marks?: Map<string, string>, label?: string }} [options] marks: class by JSON pointer
 * @returns {HTMLElement}
 */
export function jsonView(text, options = {}) {
  const root = read(text);
  const view = h("div", { class: "json", role: "group", "aria-label": options.label ?? "JSON", tabindex: "0" });
  if (!root) view.append(h("pre", { class: "json-raw" }, ...plain(text)));
  else view.append(row(text, root, null, lines(root) <= FEW_LINES ? -MAX_DEPTH : 0, "", options.marks ?? new Map(), true));
  return view;
}

/** @param {JsonNode} node @returns {number} */
function lines(node) {
  return node.members.reduce((sum, member) => sum + lines(member.value), node.members.length === 0 ? 1 : 2);
}

/**
 * @param {string} text
 * @returns {Node[]}
 */
function plain(text) {
  return segments(text).map((part) =>
    part.code === null ? document.createTextNode(part.text) : h("span", { class: "hidden-character" }, part.code),
  );
}

/**
 * @param {string} text
 * @param {JsonNode} node
 * @param {JsonNode | null} key
 * @param {number} depth
 * @param {string} pointer
 * @param {Map<string, string>} marks
 * @param {boolean} last
 * @returns {HTMLElement}
 */
function row(text, node, key, depth, pointer, marks, last) {
  const comma = last ? "" : ",";
  const mark = marks.get(pointer);
  const name = key ? [h("span", { class: "json-key" }, ...plain(text.slice(key.start, key.end))), ": "] : [];
  const element = h("div", { class: mark ? `json-row ${mark}` : "json-row" });
  if (node.members.length === 0) {
    element.append(h("div", { class: "json-line" }, ...name, scalar(text, node), comma));
    return element;
  }
  const [open, close] = node.kind === "object" ? ["{", "}"] : ["[", "]"];
  const children = h("div", { class: "json-children" });
  let drawn = 0;
  const draw = () => {
    const until = Math.min(drawn + PAGE, node.members.length);
    for (; drawn < until; drawn += 1) {
      const member = /** @type {{ key: JsonNode | null, value: JsonNode }} */ (node.members[drawn]);
      const part = member.key ? keyText(text, member.key).replaceAll("~", "~0").replaceAll("/", "~1") : String(drawn);
      children.append(
        row(text, member.value, member.key, depth + 1, `${pointer}/${part}`, marks, drawn === node.members.length - 1),
      );
    }
    if (drawn < node.members.length) {
      const more = h(
        "button",
        {
          type: "button",
          class: "link",
          onclick: () => {
            more.remove();
            draw();
          },
        },
        `Show ${Math.min(PAGE, node.members.length - drawn)} of ${plural(node.members.length - drawn, "more member", "more members")}`,
      );
      children.append(more);
    }
  };
  const size = node.kind === "object" ? plural(node.members.length, "member") : plural(node.members.length, "item");
  const summary = h("span", { class: "json-size" }, ` ${size} ${close}${comma}`);
  const ending = h("div", { class: "json-line" }, `${close}${comma}`);
  let expanded = depth < OPEN_DEPTH && node.members.length <= PAGE;
  const toggle = h("button", { type: "button", class: "json-toggle", "aria-label": key ? line(text, key) : size });
  const set = () => {
    toggle.setAttribute("aria-expanded", String(expanded));
    summary.hidden = expanded;
    children.hidden = !expanded;
    ending.hidden = !expanded;
    if (expanded && drawn === 0) draw();
  };
  const flip = () => {
    expanded = !expanded;
    set();
  };
  toggle.addEventListener("click", flip);
  element.append(h("div", { class: "json-line" }, toggle, ...name, open, summary), children, ending);
  set();
  return element;
}

/**
 * @param {string} text
 * @param {JsonNode} key
 */
function line(text, key) {
  return keyText(text, key).slice(0, 80);
}

/**
 * @param {string} text
 * @param {JsonNode} node
 */
function scalar(text, node) {
  if (node.kind === "object") return h("span", null, "{}");
  if (node.kind === "array") return h("span", null, "[]");
  const source = text.slice(node.start, node.end);
  const className = node.kind === "string" ? "json-string" : node.kind === "number" ? "json-number" : "json-literal";
  if (source.length <= LONG_STRING) return h("span", { class: className }, ...plain(source));
  const element = h("span", { class: className }, ...plain(source.slice(0, LONG_STRING)));
  const button = h(
    "button",
    {
      type: "button",
      class: "link",
      onclick: () => {
        button.remove();
        element.append(...plain(source.slice(LONG_STRING)));
      },
    },
    `… show all ${bytes(source.length)}`,
  );
  return h("span", null, element, button);
}

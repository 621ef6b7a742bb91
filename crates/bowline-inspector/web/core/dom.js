// Builds elements. Text of servers can only become text: there is no way from a string to markup here.
import { cleanup, effect, scope, signal, untracked } from "./signal.js";

/** @typedef {Node | string | number | null | undefined | false | (() => Child) | Child[]} Child */
/** @typedef {Record<string, any>} Props */

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "use", "path", "rect", "g", "line", "circle", "title", "polyline"]);
const FORBIDDEN = new Set(["innerHTML", "outerHTML", "srcdoc", "insertAdjacentHTML"]);
const SAFE_LINK = /^(#|blob:)/;
const SAFE_SOURCE = /^(blob:|data:(image|audio)\/[a-z0-9.+-]+(;[a-z0-9=.+-]+)*[;,])/i;
/** Properties of elements; everything else is an attribute. */
const PROPERTIES = new Set(["value", "checked", "disabled", "indeterminate", "hidden", "open", "selected", "readOnly", "tabIndex", "inert"]);

/**
 * Creates an element. A function as a prop (other than a listener) or as a child is bound: it runs again when a signal that it
 * read changes.
 * @template {string} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {K extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[K] : HTMLElement}
 */
export function h(tag, props, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  let ref = null;
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === "ref") ref = value;
    else if (name.startsWith("on")) listen(element, name.slice(2), value);
    else if (typeof value === "function") effect(() => set(element, name, value()));
    else set(element, name, value);
  }
  append(element, children);
  ref?.(element);
  return /** @type {any} */ (element);
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {unknown} listener
 */
function listen(element, name, listener) {
  if (listener === undefined || listener === null) return;
  if (typeof listener !== "function") throw new TypeError(`the listener for ${name} is not a function`);
  element.addEventListener(name, /** @type {EventListener} */ (listener));
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {any} value
 */
function set(element, name, value) {
  if (FORBIDDEN.has(name)) throw new TypeError(`${name} is not allowed`);
  if (name === "style") {
    if (typeof value !== "object") throw new TypeError("style is an object of properties");
    for (const [property, text] of Object.entries(value)) {
      /** @type {HTMLElement} */ (element).style.setProperty(property, text === null ? "" : String(text));
    }
    return;
  }
  if ((name === "href" || name === "action" || name === "formaction") && value !== null && value !== undefined) {
    if (!SAFE_LINK.test(String(value))) throw new TypeError(`a link may only lead to a place in the page, got ${name}`);
  }
  if (name === "src" && !SAFE_SOURCE.test(String(value))) throw new TypeError("src may only be data or a blob");
  // The value of an option is its text unless the attribute is there, also if it is empty.
  if (PROPERTIES.has(name) && !(name === "value" && element.tagName === "OPTION")) {
    const target = /** @type {any} */ (element);
    if (name === "value" ? target.value !== value : true) target[name] = value ?? "";
    return;
  }
  const attribute = name === "className" ? "class" : name;
  if (value === false || value === null || value === undefined) element.removeAttribute(attribute);
  else element.setAttribute(attribute, value === true ? "" : String(value));
}

/**
 * @param {Node} parent
 * @param {Child} child
 */
export function append(parent, child) {
  if (Array.isArray(child)) for (const each of child) append(parent, each);
  else if (typeof child === "function") parent.appendChild(bound(child));
  else if (child instanceof Node) parent.appendChild(child);
  else if (child !== null && child !== undefined && child !== false) parent.appendChild(document.createTextNode(String(child)));
}

/**
 * Replaces the children of an element.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/**
 * A place in the document whose content an effect replaces.
 * @param {() => Child} render
 */
function bound(render) {
  const start = document.createComment("");
  const end = document.createComment("");
  const fragment = document.createDocumentFragment();
  fragment.append(start, end);
  effect(() => {
    const child = render();
    // Most bound children are one text that changes: keep its node.
    const only = start.nextSibling;
    if ((typeof child === "string" || typeof child === "number") && only?.nodeType === Node.TEXT_NODE && only.nextSibling === end) {
      if (only.nodeValue !== String(child)) only.nodeValue = String(child);
      return;
    }
    clear(start, end);
    const content = document.createDocumentFragment();
    append(content, child);
    end.parentNode?.insertBefore(content, end);
  });
  return fragment;
}

/**
 * @param {Node} start
 * @param {Node} end
 */
function clear(start, end) {
  while (start.nextSibling && start.nextSibling !== end) start.nextSibling.remove();
}

/**
 * Shows `render()` while `when()` is truthy. The content is built again only when that changes.
 * @param {() => unknown} when
 * @param {() => Child} render
 * @param {() => Child} [otherwise]
 * @returns {() => Child}
 */
export function show(when, render, otherwise) {
  /** @type {boolean | null} */
  let now = null;
  /** @type {Child} */
  let content = null;
  let end = () => {};
  cleanup(() => end());
  return () => {
    const next = Boolean(when());
    if (next !== now) {
      now = next;
      end();
      [content, end] = scope(() => {
        const fragment = document.createElement("div");
        fragment.className = "contents";
        append(fragment, next ? render() : (otherwise?.() ?? null));
        return fragment;
      });
    }
    return content;
  };
}

/**
 * Renders a list. An element stays as long as its key does, so focus and input survive a change of the list.
 * @template T
 * @param {() => readonly T[]} list
 * @param {(item: T) => string | number} key
 * @param {(item: () => T) => Node} render
 * @returns {Node}
 */
export function each(list, key, render) {
  const start = document.createComment("");
  const end = document.createComment("");
  const fragment = document.createDocumentFragment();
  fragment.append(start, end);
  /** @type {Map<string | number, { node: Node, item: { value: T, notify: () => void }, end: () => void }>} */
  const rows = new Map();
  effect(() => {
    const items = list();
    untracked(() => {
      const parent = /** @type {Node} */ (end.parentNode);
      const kept = new Set();
      let before = start.nextSibling;
      for (const item of items) {
        const id = key(item);
        if (kept.has(id)) continue;
        kept.add(id);
        let row = rows.get(id);
        if (row) {
          if (row.item.value !== item) {
            row.item.value = item;
            row.item.notify();
          }
        } else {
          row = create(item, render);
          rows.set(id, row);
        }
        if (row.node === before) before = before.nextSibling;
        else parent.insertBefore(row.node, before);
      }
      for (const [id, row] of rows) {
        if (kept.has(id)) continue;
        row.end();
        /** @type {ChildNode} */ (row.node).remove();
        rows.delete(id);
      }
    });
  });
  cleanup(() => {
    for (const row of rows.values()) row.end();
  });
  return fragment;
}

/**
 * @template T
 * @param {T} value
 * @param {(item: () => T) => Node} render
 */
function create(value, render) {
  const item = { value, notify: () => {} };
  const version = tick();
  item.notify = version.bump;
  const [node, end] = scope(() =>
    render(() => {
      version.read();
      return item.value;
    }),
  );
  return { node, item, end };
}


function tick() {
  const count = signal(0);
  return { read: () => count(), bump: () => count.update((n) => n + 1) };
}

/**
 * An icon of the sprite in `index.html`. Without a label it is decoration.
 * @param {string} name
 * @param {string} [label]
 */
export function icon(name, label) {
  return h(
    "svg",
    label ? { class: "icon", role: "img", "aria-label": label } : { class: "icon", "aria-hidden": "true" },
    h("use", { href: `#i-${name}` }),
  );
}

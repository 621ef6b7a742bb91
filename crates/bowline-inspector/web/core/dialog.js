// Dialogs, menus, tabs and copying: what every view uses beyond plain elements.
import { append, h, icon } from "./dom.js";

/**
 * Opens a modal dialog. The browser returns the focus when it closes.
 * @param {string} title
 * @param {(close: () => void) => import("./dom.js").Child} render
 * @param {string} [className]
 * @param {() => void} [closed] runs when it has closed
 */
export function dialog(title, render, className = "", closed = () => {}) {
  const id = `d${Math.random().toString(36).slice(2)}`;
  const close = () => element.close();
  const element = h("dialog", { class: className, "aria-labelledby": id, onclose: () => {
    element.remove();
    closed();
  } });
  append(element, h(
    "div",
    { class: "dialog-body" },
    h("div", { class: "dialog-head" }, h("h2", { id }, title),
      h("button", { type: "button", class: "button quiet square", "aria-label": "Close", onclick: close }, icon("cross"))),
    render(close),
  ));
  element.addEventListener("click", (event) => {
    if (event.target === element) close();
  });
  document.body.append(element);
  element.showModal();
  return close;
}

let menus = 0;

/**
 * A button that opens a menu below it.
 * @param {import("./dom.js").Child} label
 * @param {() => { label: string, hint?: string, run: () => void }[]} items
 * @param {Record<string, unknown>} [props]
 */
export function menuButton(label, items, props = {}) {
  menus += 1;
  const id = `menu-${menus}`;
  const menu = h("div", { id, popover: "auto", role: "menu", class: "menu" });
  const button = h("button", { type: "button", class: "button", "aria-haspopup": "menu", "aria-expanded": "false", popovertarget: id, ...props }, label, icon("down"));
  menu.addEventListener("toggle", (event) => {
    const open = /** @type {ToggleEvent} */ (event).newState === "open";
    button.setAttribute("aria-expanded", String(open));
    if (!open) return;
    menu.replaceChildren(
      ...items().map((item) =>
        h("button", {
          type: "button", role: "menuitem",
          onclick: () => {
            menu.hidePopover();
            item.run();
          },
        }, item.label, item.hint ? h("span", { class: "muted small" }, item.hint) : null)),
    );
    const box = button.getBoundingClientRect();
    const width = menu.offsetWidth;
    const below = box.bottom + 4 + menu.offsetHeight <= innerHeight;
    menu.style.left = `${Math.max(8, Math.min(box.left, innerWidth - width - 8))}px`;
    menu.style.top = below ? `${box.bottom + 4}px` : `${Math.max(8, box.top - 4 - menu.offsetHeight)}px`;
    /** @type {HTMLElement | null} */ (menu.firstElementChild)?.focus();
  });
  menu.addEventListener("keydown", (event) => {
    const entries = /** @type {HTMLElement[]} */ ([...menu.children]);
    const at = entries.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    entries[(at + step + entries.length) % entries.length]?.focus();
  });
  return h("span", { class: "contents" }, button, menu);
}

/**
 * Tabs as segments. Arrow keys move between them.
 * @param {string} label
 * @param {() => { id: string, label: string }[]} tabs
 * @param {() => string} current
 * @param {(id: string) => void} choose
 */
export function segmentTabs(label, tabs, current, choose) {
  const list = h("div", { class: "segments", role: "tablist", "aria-label": label }, () =>
    tabs().map((tab) =>
      h("button", {
        type: "button", role: "tab", "data-tab": tab.id,
        "aria-selected": () => String(current() === tab.id),
        tabindex: () => (current() === tab.id ? "0" : "-1"),
        onclick: () => choose(tab.id),
      }, tab.label)));
  list.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const all = tabs();
    const at = all.findIndex((tab) => tab.id === current());
    const next = all[(at + step + all.length) % all.length];
    if (!next) return;
    choose(next.id);
    /** @type {HTMLElement | null} */ (list.querySelector(`[data-tab="${next.id}"]`))?.focus();
  });
  return list;
}

/**
 * A button that copies text and says so.
 * @param {() => string | Promise<string>} text
 * @param {string} [label]
 * @param {string} [className]
 */
export function copyButton(text, label = "Copy", className = "button") {
  const word = h("span", null, label);
  return h("button", {
    type: "button", class: className,
    onclick: async () => {
      try {
        await copy(await text());
        word.textContent = "Copied";
      } catch (error) {
        word.textContent = "Not copied";
        announce(String(error instanceof Error ? error.message : error));
      }
      setTimeout(() => {
        word.textContent = label;
      }, 1500);
    },
  }, icon("copy"), word);
}

/** @param {string} text */
export async function copy(text) {
  await navigator.clipboard.writeText(text);
  announce("Copied");
}

let toastTimer = 0;

/**
 * Says something at the edge of the page, for a moment and to a screen reader.
 * @param {string} text
 * @param {"ok" | "error"} [look]
 */
export function toast(text, look = "ok") {
  announce(text);
  document.getElementById("toast")?.remove();
  clearTimeout(toastTimer);
  const element = h("div", { id: "toast", class: `toast ${look}`, popover: "manual", "aria-hidden": "true" }, icon(look === "ok" ? "check" : "alert"), h("span", null, text));
  document.body.append(element);
  element.showPopover();
  toastTimer = setTimeout(() => element.remove(), look === "ok" ? 2500 : 8000);
}

/** @param {unknown} error */
export function fail(error) {
  toast(error instanceof Error ? error.message : String(error), "error");
}

/**
 * Says something to a screen reader.
 * @param {string} text
 */
export function announce(text) {
  const region = document.getElementById("announce");
  if (region) region.textContent = text;
}

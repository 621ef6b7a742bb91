// The palette (views, servers, tools, recent calls) and the help.
import { effect, scope, signal } from "./signal.js";
import { h, icon } from "./dom.js";
import { format, go } from "./route.js";
import { bound, isMac, setSingleKeys, singleKeys } from "./keys.js";
import { dialog } from "./dialog.js";
import { entries, needEntries, overview } from "./model.js";
import { line } from "./text.js";
import { signOut } from "../app.js";
import { roots } from "../traffic/store.js";

/** @typedef {{ icon: string, label: string, hint: string, run: () => void }} Command */

/** @returns {Command[]} */
function commands() {
  /** @type {Command[]} */
  const list = [
    { icon: "home", label: "Home", hint: "View", run: () => go("#/") },
    { icon: "explore", label: "Explore", hint: "View", run: () => go("#/explore") },
    { icon: "traffic", label: "Traffic", hint: "View", run: () => go("#/traffic") },
    { icon: "inbox", label: "Inbox", hint: "View", run: () => go("#/inbox") },
    { icon: "alert", label: "Failed calls", hint: "Traffic", run: () => go("#/traffic?f=status%3Afailed") },
  ];
  for (const server of overview()?.servers ?? []) {
    list.push({ icon: "plug", label: server.name, hint: "Server", run: () => go(format("server", [server.name])) });
  }
  for (const group of entries()?.servers ?? []) {
    for (const item of group.items) {
      list.push({
        icon: item.kind,
        label: `${group.server} / ${line(item.label.text, 120)}`,
        hint: item.kind === "tool" ? "Tool" : item.kind === "prompt" ? "Prompt" : item.kind === "template" ? "Template" : "Resource",
        run: () => go(format("explore", [group.server, item.kind, item.name])),
      });
    }
  }
  for (const row of roots.filter((each) => each.kind === "call").slice(-20).reverse()) {
    list.push({ icon: "traffic", label: line(`${row.method} ${row.name}`, 120), hint: `Call · ${row.word || "running"}`, run: () => go(format("traffic", [String(row.seq)])) });
  }
  return list;
}

/**
 * Returns how well a label matches, or a negative number. All words have to occur.
 * @param {string} label
 * @param {string[]} words
 */
function score(label, words) {
  const text = label.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at < 0) return -1;
    sum += at === 0 ? 3 : /[\s/_.-]/.test(text[at - 1] ?? "") ? 2 : 1;
  }
  return sum;
}

/** Opens the palette. */
export function open() {
  if (document.querySelector("dialog.palette[open]")) return;
  needEntries();
  const text = signal("");
  const at = signal(0);
  const [element, end] = scope(() => {
    const found = () => {
      const words = text().toLowerCase().split(/\s+/).filter(Boolean);
      return commands()
        .map((command, index) => ({ command, index, rank: score(`${command.label} ${command.hint}`, words) }))
        .filter((each) => each.rank >= 0)
        .sort((a, b) => b.rank - a.rank || a.index - b.index)
        .slice(0, 50)
        .map((each) => each.command);
    };
    const list = h("div", { role: "listbox", id: "palette-list", "aria-label": "Results" });
    const input = h("input", {
      type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-label": "Search or run", placeholder: "Go to a view, server, tool or call…",
      autocomplete: "off", spellcheck: "false",
      oninput: () => {
        text.set(input.value);
        at.set(0);
      },
    });
    const dialogElement = h("dialog", { class: "palette", "aria-label": "Search or run", onclose: () => {
      dialogElement.remove();
      end();
    } }, input, list);
    /** @param {Command | undefined} command */
    const run = (command) => {
      if (!command) return;
      dialogElement.close();
      command.run();
    };
    effect(() => {
      const all = found();
      const now = Math.min(at(), all.length - 1);
      list.replaceChildren(...(all.length === 0 ? [h("div", { class: "none" }, "Nothing matches")] : all.map((command, index) =>
        h("div", { role: "option", id: `palette-${index}`, "aria-selected": String(index === now), onclick: () => run(command), onpointermove: () => at.set(index) },
          icon(command.icon), h("span", { class: "ellipsis" }, command.label), h("span", { class: "hint" }, command.hint)))));
      if (all.length > 0) {
        input.setAttribute("aria-activedescendant", `palette-${now}`);
        list.children[now]?.scrollIntoView({ block: "nearest" });
      } else input.removeAttribute("aria-activedescendant");
    });
    input.addEventListener("keydown", (event) => {
      const length = Math.max(1, found().length);
      if (event.key === "ArrowDown") at.update((n) => (n + 1) % length);
      else if (event.key === "ArrowUp") at.update((n) => (n - 1 + length) % length);
      else if (event.key === "Enter") run(found()[at.peek()]);
      else return;
      event.preventDefault();
    });
    dialogElement.addEventListener("click", (event) => {
      if (event.target === dialogElement) dialogElement.close();
    });
    return dialogElement;
  });
  document.body.append(element);
  element.showModal();
}

/** Shows the shortcuts, the settings and the first steps. */
export function help() {
  dialog("Help", (close) => {
    const key = (/** @type {string} */ keys) => keys.split(" ").map((each) => h("kbd", null, each.replace("mod+", isMac ? "⌘ " : "Ctrl ").replace(/(^| )[a-z]$/, (letter) => letter.toUpperCase())));
    const rows = [
      ...bound().map((binding) => ({ keys: binding.keys, label: binding.label })),
      { keys: "mod+Enter", label: "Run the call" },
      { keys: "Esc", label: "Close what is open" },
      { keys: "↑ ↓", label: "Move in a list; also J and K" },
      { keys: "← →", label: "Close or open a row" },
      { keys: "R", label: "Send the selected call again" },
      { keys: "C", label: "Copy the selected call" },
      { keys: "X", label: "Mark the selected call, or compare it with the marked one" },
    ];
    return [
      h("dl", { class: "shortcuts" }, ...rows.flatMap((row) => [h("dt", null, ...key(row.keys)), h("dd", null, row.label)])),
      h("label", { class: "choice" },
        h("input", { type: "checkbox", checked: () => singleKeys(), onchange: (/** @type {Event} */ event) => setSingleKeys(/** @type {HTMLInputElement} */ (event.target).checked) }),
        "Single keys act, such as / and G"),
      h("div", { class: "actions" },
        h("button", { type: "button", class: "button", onclick: () => {
          close();
          sessionStorage.setItem("bowline.first-steps", "on");
          go("#/");
          dispatchEvent(new Event("bowline:first-steps"));
        } }, "Show the first steps"),
        h("button", { type: "button", class: "button", onclick: () => {
          close();
          signOut();
        } }, "Sign out this browser")),
      h("p", { class: "muted small" }, () => `bowline ${overview()?.version ?? ""}. Nothing of this page leaves this machine.`),
    ];
  });
}

// Draws results: Markdown, code, images, audio, links, embedded resources and tables, with text nodes only.
import { cleanup, signal } from "../core/signal.js";
import { h, icon } from "../core/dom.js";
import { jsonView, read } from "../core/json.js";
import { format } from "../core/route.js";
import { bytes, count, line, shown, told } from "../core/text.js";

/** @typedef {import("../api").ContentPart} ContentPart */
/** @typedef {import("../api").Block} Block */
/** @typedef {import("../api").Inline} Inline */

/**
 * Draws one part of a result.
 * @param {ContentPart} part
 * @param {string} server
 * @returns {Node}
 */
export function contentPart(part, server) {
  switch (part.kind) {
    case "markdown": return h("div", { class: "markdown" }, ...part.blocks.map(block), hiddenNote(part.source));
    case "text": return code(part.text.text, part.language, part.text);
    case "image": return h("figure", { class: "media" }, h("img", { src: blobUrl(part.mime, part.data, "image"), alt: `Image of the result, ${bytes(part.bytes)}` }), h("figcaption", { class: "muted small" }, `${line(part.mime, 60)}, ${bytes(part.bytes)}`));
    case "audio": return h("figure", { class: "media" }, h("audio", { controls: true, src: blobUrl(part.mime, part.data, "audio"), "aria-label": "Audio of the result" }), h("figcaption", { class: "muted small" }, `${line(part.mime, 60)}, ${bytes(part.bytes)}`));
    case "link": return h("div", { class: "resource-link" }, icon("resource"), h("div", null,
      h("div", null, h("b", null, ...told(part.name)), " ", part.mime ? h("span", { class: "tag" }, ...told(part.mime)) : null),
      h("code", { class: "muted" }, ...told(part.shown)), part.description ? h("p", { class: "muted" }, ...told(part.description)) : null,
      h("a", { href: format("explore", [server, "resource", part.uri]) }, "Read it in Explore")));
    case "resource": return h("div", { class: "embedded" }, h("div", { class: "embedded-head" }, icon("resource"), h("code", null, ...told(part.uri)), part.mime ? h("span", { class: "tag" }, ...told(part.mime)) : null), contentPart(part.content, server));
    case "binary": return h("div", { class: "resource-link" }, icon("resource"), h("div", null, h("div", null, `Binary data, ${bytes(part.bytes)} `, part.mime ? h("span", { class: "tag" }, ...told(part.mime)) : null),
      h("a", { href: blobUrl("application/octet-stream", part.data, "application"), download: "bowline-result.bin" }, "Save")));
    case "unknown": return h("div", null, h("p", { class: "muted small" }, "Content of an unknown type"), jsonView(part.json));
  }
}

/** @param {import("../api").Shown} source */
function hiddenNote(source) {
  return source.hidden || source.left_out ? h("p", { class: "small warn" }, ...told({ text: "", ...(source.hidden ? { hidden: source.hidden } : {}), ...(source.left_out ? { left_out: source.left_out } : {}) })) : null;
}

/**
 * @param {string} text
 * @param {string | undefined} language
 * @param {import("../api").Shown} [source]
 */
function code(text, language, source) {
  if ((language === "json" || /\bjson$/.test(language ?? "")) && read(text)) return h("div", { class: "code-box" }, jsonView(text));
  return h("div", { class: "code-box" }, h("pre", { tabindex: "0", role: "region", "aria-label": "Text" }, ...(source ? told(source) : shown(text))));
}

/**
 * A URL of this page for data of a message. Nothing is fetched from elsewhere.
 * @param {string} mime
 * @param {string} data base64
 * @param {"image" | "audio" | "application"} kind
 */
function blobUrl(mime, data, kind) {
  const type = new RegExp(`^${kind}/[a-z0-9.+-]+$`, "i").test(mime) ? mime : "application/octet-stream";
  let raw = "";
  try {
    raw = atob(data.replace(/\s/g, ""));
  } catch {
    // Not base64: the picture stays empty, the message in Traffic has the text.
  }
  const array = Uint8Array.from(raw, (character) => character.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([array], { type }));
  cleanup(() => URL.revokeObjectURL(url));
  return url;
}

/**
 * @param {Block} item
 * @returns {Node}
 */
function block(item) {
  switch (item.kind) {
    case "paragraph": return h("p", null, ...item.inlines.map(inline));
    case "heading": return h("p", { class: `md-heading md-h${Math.min(3, item.level)}`, role: "heading", "aria-level": String(Math.min(6, item.level + 2)) }, ...item.inlines.map(inline));
    case "code": return code(item.text, item.language);
    case "quote": return h("blockquote", null, ...item.blocks.map(block));
    case "list": return h(item.start === undefined ? "ul" : "ol", { start: item.start ?? null, class: "md-list" }, ...item.items.map((blocks) => h("li", null, ...blocks.map(block))));
    case "table": return h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", { class: "data" },
      h("thead", null, h("tr", null, ...item.head.map((cell, index) => h("th", { scope: "col", class: item.align[index] === "right" ? "number" : null }, ...cell.map(inline))))),
      h("tbody", null, ...item.rows.map((row) => h("tr", null, ...row.map((cell, index) => h("td", { class: item.align[index] === "right" ? "number" : null }, ...cell.map(inline))))))));
    case "rule": return h("hr");
  }
}

/**
 * @param {Inline} item
 * @returns {Node | string}
 */
function inline(item) {
  switch (item.kind) {
    case "text": return h("span", null, ...shown(item.text));
    case "code": return h("code", { class: "md-code" }, ...shown(item.text));
    case "strong": return h("strong", null, ...item.inlines.map(inline));
    case "emphasis": return h("em", null, ...item.inlines.map(inline));
    case "strike": return h("s", null, ...item.inlines.map(inline));
    case "link": return h("span", null, ...item.inlines.map(inline), " ", target(item.target));
    case "image": return h("span", { class: "muted" }, "Image: ", ...shown(item.alt), " ", target(item.target));
    case "break": return h("br");
  }
}

/**
 * The address of a link, as text with its host, and a button that opens it where the host allows that.
 * @param {import("../api").LinkTarget} link
 */
export function target(link) {
  const warnings = link.warnings.map((warning) => h("span", { class: "warn small" }, " ", icon("alert"), warning));
  const { url } = link;
  // The host gives a URL only for http and https; a second look costs nothing.
  const safe = url !== undefined && /^https?:\/\//i.test(url);
  return h("span", { class: "target" },
    safe
      ? h("button", { type: "button", class: "link", title: line(link.text.text, 500), onclick: () => open(url, "_blank", "noopener,noreferrer") }, `(${line(link.host ?? link.text.text, 80)})`)
      : h("code", { class: "muted" }, "(", ...told(link.text), ")"),
    ...warnings);
}

/**
 * Structured content as a table that can be sorted.
 * @param {import("../api").Table} table
 */
export function dataTable(table) {
  const order = signal(/** @type {{ column: number, down: boolean } | null} */ (null));
  const rows = () => {
    const by = order();
    if (!by) return table.rows;
    const sign = by.down ? -1 : 1;
    return [...table.rows].sort((a, b) => {
      const [x, y] = [a[by.column], b[by.column]];
      if (x?.number !== undefined && y?.number !== undefined) return sign * (x.number - y.number);
      return sign * (x?.text ?? "").localeCompare(y?.text ?? "");
    });
  };
  return h("div", null,
    h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Structured content" },
      h("table", { class: "data" },
        h("thead", null, h("tr", null, ...table.columns.map((column, index) =>
          h("th", { scope: "col", class: column.numeric ? "number" : null, "aria-sort": () => (order()?.column === index ? (order()?.down ? "descending" : "ascending") : "none") },
            h("button", { type: "button", class: "sort", onclick: () => order.update((now) => (now?.column === index ? (now.down ? null : { column: index, down: true }) : { column: index, down: false })) },
              ...told(column.name), () => (order()?.column === index ? (order()?.down ? " ↓" : " ↑") : "")))))),
        h("tbody", null, () => rows().map((row) => h("tr", null, ...row.map((cell, index) => h("td", { class: table.columns[index]?.numeric ? "number" : null }, ...shown(cell.text)))))))),
    table.total > table.rows.length ? h("p", { class: "muted small" }, `${count(table.rows.length)} of ${count(table.total)} rows`) : null);
}

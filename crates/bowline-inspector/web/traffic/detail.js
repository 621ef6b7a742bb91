// One row of Traffic in detail: summary, messages as sent, both legs, HTTP, timing.
import { cleanup, computed, effect, scope, signal, untracked } from "../core/signal.js";
import { fill, h, icon, show } from "../core/dom.js";
import { act, grade, query } from "../core/api.js";
import { copy, dialog, fail, menuButton, segmentTabs, toast } from "../core/dialog.js";
import { jsonView, locate, parseExact, pretty, read } from "../core/json.js";
import { format, go } from "../core/route.js";
import { hostNow } from "../core/model.js";
import { bytes, clock, duration, hue, line, plural, told } from "../core/text.js";
import { ends, parts, roots, version } from "./store.js";
import { changes, comparable, compare, markOrCompare } from "./compare.js";
import { onEveryRevision } from "./revisions.js";
import { taskTab } from "./task.js";
import { timeBar } from "./waterfall.js";
import { rowStatus } from "../home/home.js";

/** @typedef {import("./store.js").Row} Row */

/** Milliseconds by which a line of output may come late: it passes another pipe than messages. */
const NEAR = 250;

const FORMS = /** @type {const} */ ([["command", "bowline command"], ["curl", "curl"], ["json", "JSON message"], ["transcript", "Transcript"]]);

/**
 * Copies a call in one of the forms that the host writes.
 * @param {Row} row
 * @param {string} form
 */
export async function copyAs(row, form) {
  try {
    const reply = await query({ query: "copy", seq: row.seq, as: form });
    await copy(reply.text);
    toast(reply.note ? `Copied: ${reply.note}` : "Copied");
  } catch (error) {
    fail(error);
  }
}

/**
 * Sends a call again and goes to it.
 * @param {Row} row
 */
export async function resend(row) {
  const origin = requestOf(row);
  if (!origin || grade.peek() !== "control") return;
  try {
    const sent = await act({ action: "resend", seq: origin.seq });
    go(format("traffic", [String(sent.call)]));
  } catch (error) {
    fail(error);
  }
}

/**
 * Sends a call again with other arguments, to the same server and tool.
 * @param {Row} row
 */
async function editAndResend(row) {
  let message;
  try {
    message = await query({ query: "message", seq: row.seq, all: true });
  } catch (error) {
    fail(error);
    return;
  }
  const text = message.text ?? "";
  const root = read(text);
  const found = root && locate(text, root, "/params/arguments");
  dialog(`Send ${line(row.name, 60)} again`, (close) => {
    const problem = signal("");
    const busy = signal(false);
    const area = h("textarea", { class: "input code source", rows: "12", "aria-label": "Arguments as JSON", "aria-invalid": () => String(problem() !== ""), value: found ? pretty(text.slice(found.start, found.end)) : "{}", oninput: () => {
      const next = parseExact(area.value);
      const isObject = next !== undefined && next !== null && typeof next === "object" && !Array.isArray(next);
      problem.set(next === undefined ? "This is not JSON yet" : isObject ? "" : "Arguments are an object");
    } });
    return [
      message.masked > 0 ? h("p", { class: "status warn" }, icon("alert"), "Masked values are sent as ***: fill them in, or use Resend, which keeps them.") : null,
      area,
      h("p", { class: "problem", hidden: () => problem() === "" }, icon("alert"), problem),
      h("div", { class: "actions" },
        h("button", { type: "button", class: "button primary", disabled: () => problem() !== "" || busy(), onclick: async () => {
          busy.set(true);
          try {
            // The arguments are spliced as text, so that long numbers stay exact.
            const sent = await act(`{"action":"resend","seq":${row.seq},"arguments":${area.value}}`);
            close();
            go(format("traffic", [String(sent.call)]));
          } catch (error) {
            problem.set(error instanceof Error ? error.message : String(error));
          }
          busy.set(false);
        } }, icon("again"), "Send"),
        h("button", { type: "button", class: "button quiet", onclick: close }, "Cancel")),
    ];
  });
}

/**
 * The request that can be sent again: one that the host or a client sends to a server.
 * @param {Row} row
 * @returns {Row | null}
 */
function requestOf(row) {
  if (row.kind !== "call") return null;
  const toServer = row.leg === "client" ? row.direction === "in" : row.direction === "out";
  return toServer && ["tools/call", "resources/read", "prompts/get"].includes(row.method) ? row : null;
}

/**
 * @param {Row} row
 * @param {() => void} close
 */
export function callDetail(row, close) {
  const state = computed(() => {
    version();
    return `${row.status} ${row.last} ${row.children.length} ${row.task?.status} ${row.task?.message}`;
  });
  const tab = signal(row.kind === "call" ? "summary" : "request");
  const other = () => row.children.find((child) => child.kind === "call" && child.leg === "server" && child.method === row.method) ?? null;
  const tabs = () => {
    state();
    const list = [{ id: "summary", label: "Summary" }];
    if (row.kind === "call" || row.kind === "notice" || row.kind === "log" || row.kind === "other") list.push({ id: "request", label: row.kind === "call" ? "Request" : "Message" });
    if (row.last !== null && row.kind === "call") list.push({ id: "response", label: "Response" });
    if (row.task) list.push({ id: "task", label: "Task" });
    if (other()) list.push({ id: "legs", label: "Both legs" });
    if (row.kind === "call") list.push({ id: "http", label: "HTTP" });
    if (row.kind === "call") list.push({ id: "timing", label: "Timing" });
    return list;
  };
  const current = () => (tabs().some((each) => each.id === tab()) ? tab() : "summary");
  const body = h("div", { class: "detail-body" });
  let end = () => {};
  cleanup(() => end());
  effect(() => {
    const which = current();
    state();
    end();
    const [node, dispose] = scope(() => untracked(() => {
      if (which === "request") return message(row.seq);
      if (which === "response") return row.last === null ? h("p", null) : message(row.last);
      if (which === "task") return taskTab(row);
      if (which === "legs") return bothLegs(row, /** @type {Row} */ (other()));
      if (which === "http") return http(row);
      return which === "timing" ? timing(row) : summary(row);
    }));
    end = dispose;
    fill(body, node);
  });
  const title = row.name || row.method || row.kind;
  return h("section", { class: `detail hue-${hue(row.server || row.peer)}`, "aria-label": `Detail of ${line(title, 60)}` },
    h("div", { class: "detail-head" },
      h("button", { type: "button", class: "button quiet only-narrow", onclick: close }, icon("back"), "All"),
      h("h2", { class: "ellipsis" }, h("span", { class: "mark" }), " ", line(title, 120)),
      h("button", { type: "button", class: "button quiet square only-wide", "aria-label": "Close", title: "Close", onclick: close }, icon("cross")),
      h("div", { class: "actions" },
        show(() => requestOf(row) !== null && grade() === "control", () => h("button", { type: "button", class: "button", onclick: () => resend(row) }, icon("again"), "Resend")),
        show(() => requestOf(row) !== null && row.method !== "resources/read" && grade() === "control", () => h("button", { type: "button", class: "button", title: "Send it again with other arguments", onclick: () => editAndResend(row) }, "Edit")),
        row.kind === "call" ? menuButton("Compare", () => {
          const { marked, before } = comparable(row);
          return [
            ...(before ? [{ label: "With the call before", hint: clock(before.at).slice(0, 8), run: () => compare(before, row) }] : []),
            ...(requestOf(row) && grade() === "control" ? [{ label: "On every revision…", hint: "runs it again", run: () => onEveryRevision(row.name || row.method, async (revision) => (await act({ action: "resend", seq: row.seq, revision })).call) }] : []),
            ...(marked ? [{ label: `With ${line(marked.name || marked.method, 40)}`, hint: clock(marked.at).slice(0, 8), run: () => compare(marked, row) }] : [{ label: "With another call…", hint: "mark this one", run: () => markOrCompare(row) }]),
          ];
        }) : null,
        row.kind === "call" ? menuButton("Copy as", () => FORMS.map(([form, label]) => ({ label, run: () => copyAs(row, form) }))) : null)),
    h("div", { class: "detail-tabs" }, segmentTabs("Detail", tabs, current, (id) => tab.set(id))),
    body);
}

/** @param {Row} row */
function summary(row) {
  const [from, to] = ends(row);
  const pair = (/** @type {string} */ name, /** @type {any} */ value) => (value === null || value === "" || value === undefined ? [] : [h("dt", null, name), h("dd", null, value)]);
  const near = row.kind === "output" || row.kind === "log" ? runningAt(row) : [];
  return h("div", { class: "detail-summary" },
    row.kind === "output" || row.kind === "policy" || row.kind === "state" || row.kind === "question" ? h("div", { class: "quote" }, line(row.name, 2000)) : null,
    h("dl", { class: "pairs" },
      ...pair("Status", row.status ? rowStatus(row) : ""),
      ...pair("Who", to ? `${line(from, 60)} → ${line(to, 60)}` : line(from, 60)),
      ...pair("Method", row.method ? h("code", null, line(row.method, 120)) : ""),
      ...pair("Task", row.task ? h("code", null, line(row.task.id, 120)) : ""),
      ...pair("Name", row.name && row.kind === "call" ? h("code", null, line(row.name, 300)) : ""),
      ...pair("At", clock(row.at)),
      ...pair("Took", duration(row.took)),
      ...pair("Size", row.size > 0 ? bytes(row.size) : ""),
      ...pair("Revision", row.revision),
      ...pair("Id", row.requestId ? h("code", null, line(row.requestId, 120)) : ""),
      ...pair("Message", `${row.seq}${row.last === null ? "" : ` and ${row.last}`}`)),
    row.took !== null && row.kind === "call" ? [h("h3", null, "Where the time went"), timeBar(row)] : null,
    near.length > 0 ? [h("h3", null, "Calls that ran then"), h("ul", { class: "call-links" }, ...near.map((call) => h("li", null, h("a", { href: format("traffic", [String(call.seq)]) }, `${call.method} ${line(call.name, 80)}`), " ", h("span", { class: "muted" }, duration(call.took)))))] : null);
}

/** @param {Row} row */
function runningAt(row) {
  /** @type {Row[]} */
  const found = [];
  /** @type {(each: Row) => void} */
  const visit = (each) => {
    if (each.kind === "call" && each.leg === "server" && each.server === row.server && each.at <= row.at + NEAR && (each.took === null || each.at + each.took >= row.at - NEAR)) found.push(each);
    each.children.forEach(visit);
  };
  for (const root of roots.slice(-2000)) visit(root);
  return found.slice(-8);
}

/**
 * A message as sent.
 * @param {number} seq
 */
function message(seq) {
  const place = h("div", { class: "message" });
  let ended = false;
  cleanup(() => {
    ended = true;
  });
  const load = (/** @type {boolean} */ whole) => query({ query: "message", seq, all: whole }).then(
    (reply) => {
      if (ended) return;
      const text = reply.text;
      if (text === undefined) {
        fill(place, h("p", { class: "muted" }, "The text of this message is not kept."));
        return;
      }
      fill(place,
        h("p", { class: "muted small message-note" }, [bytes(reply.head.size), reply.masked > 0 ? plural(reply.masked, "masked value") : "", reply.hidden > 0 ? plural(reply.hidden, "hidden character") : "", reply.sha256 ? `SHA-256 ${reply.sha256.slice(0, 16)}…` : ""].filter(Boolean).join(" · ")),
        jsonView(text, { label: "The message as sent" }),
        reply.left_out > 0 ? h("p", { class: "muted" }, `${bytes(reply.left_out)} left out. `, whole ? null : h("button", { type: "button", class: "link", onclick: () => load(true) }, "Show all that is kept")) : null);
    },
    (error) => {
      if (!ended) fill(place, h("p", { class: "error" }, error.message));
    },
  );
  load(false);
  return place;
}

/**
 * Both legs of a call side by side; what the host changed is marked.
 * @param {Row} client
 * @param {Row} server
 */
function bothLegs(client, server) {
  const place = h("div", { class: "legs" });
  let ended = false;
  cleanup(() => {
    ended = true;
  });
  const text = async (/** @type {number | null} */ seq) => (seq === null ? null : ((await query({ query: "message", seq, all: true })).text ?? null));
  Promise.all([text(client.seq), text(server.seq), text(server.last), text(client.last)]).then(([asked, passed, answered, returned]) => {
    if (ended) return;
    const column = (/** @type {string} */ title, /** @type {string | null} */ one, /** @type {string | null} */ two) => {
      const marks = one !== null && two !== null ? changes(two, one) : new Map();
      return h("section", { class: "leg" }, h("h3", null, title), two === null ? h("p", { class: "muted" }, "Not kept, or not there yet.") : jsonView(two, { marks, label: title }));
    };
    fill(place, column(`${line(client.peer, 40)} → gateway`, passed, asked), column(`gateway → ${line(server.peer, 40)}`, asked, passed), column(`${line(server.peer, 40)} → gateway`, returned, answered), column(`gateway → ${line(client.peer, 40)}`, answered, returned),
      h("p", { class: "muted small legs-note" }, h("span", { class: "swatch changed-swatch" }), "differs from the other leg"));
  }, (error) => {
    if (!ended) fill(place, h("p", { class: "error" }, error.message));
  });
  return place;
}

/** @param {Row} row */
function http(row) {
  const place = h("div", null);
  const seqs = [row.seq, ...(row.last === null ? [] : [row.last])];
  Promise.all(seqs.map((seq) => query({ query: "message", seq }))).then((replies) => {
    const found = replies.filter((reply) => reply.http);
    fill(place, found.length === 0 ? h("p", { class: "muted" }, "This message did not pass over HTTP, or its headers are not kept.")
      : found.map((reply) => h("div", null, h("h3", null, `Message ${reply.head.seq}`), h("pre", { class: "output", tabindex: "0", role: "region", "aria-label": "Headers" }, ...told({ text: reply.http })))));
  }, (error) => fill(place, h("p", { class: "error" }, error.message)));
  return place;
}

/** @param {Row} row */
function timing(row) {
  /** @type {{ row: Row, level: number }[]} */
  const list = [];
  /** @type {(each: Row, level: number) => void} */
  const visit = (each, level) => {
    list.push({ row: each, level });
    each.children.forEach((child) => visit(child, level + 1));
  };
  visit(row, 0);
  const length = Math.max(0.001, row.took ?? hostNow() - row.at);
  return h("div", { class: "timing" }, h("table", { class: "data" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "What"), h("th", { scope: "col", class: "number" }, "Start"), h("th", { scope: "col", class: "number" }, "Took"), h("th", { scope: "col", class: "timing-col" }, h("span", { class: "visually-hidden" }, "Bar")))),
    h("tbody", null, ...list.slice(0, 200).map((item) => {
      const each = item.row;
      const bar = h("div", { class: "timing-bar" });
      bar.style.marginLeft = `${Math.min(99, (Math.max(0, each.at - row.at) / length) * 100)}%`;
      bar.style.width = `${Math.max(0.5, Math.min(100, ((each.took ?? 0) / length) * 100))}%`;
      for (const part of each.took === null ? [] : parts(each, hostNow())) {
        const piece = h("div", { class: `who-${part.who}` });
        piece.style.flexGrow = String(Math.max(0.001, part.until - part.from));
        bar.append(piece);
      }
      const name = h("td", null, line(`${ends(each)[0]}${ends(each)[1] ? ` → ${ends(each)[1]}` : ""}  ${each.method || each.kind} ${each.kind === "call" ? each.name : ""}`, 90));
      name.style.paddingLeft = `${8 + item.level * 14}px`;
      return h("tr", null, name, h("td", { class: "number" }, `+${duration(Math.max(0, each.at - row.at))}`), h("td", { class: "number" }, duration(each.took)), h("td", { class: "timing-col" }, bar));
    }))));
}

// Keeps the heads of messages as rows: a request and its response are one row, with what it caused below it.
import { signal } from "../core/signal.js";

/** @typedef {import("../api").Head} Head */
/** @typedef {"call" | "notice" | "log" | "output" | "policy" | "question" | "model" | "state" | "gap" | "other"} RowKind */
/** @typedef {"running" | "done" | "failed" | "cancelled" | "denied" | ""} RowStatus */

/** How many rows the page keeps. The host keeps bytes, the page keeps rows. */
export const MAX_ROWS = 100_000;

/** @type {Record<string, [RowStatus, string]>} */
const STATUS = {
  done: ["done", "Done"],
  tool_error: ["failed", "Tool error"],
  rejected: ["failed", "Rejected"],
  input_required: ["done", "Asks for input"],
  no_answer: ["failed", "No answer"],
  cancelled: ["cancelled", "Cancelled"],
  allowed: ["done", "Allowed"],
  denied: ["denied", "Denied"],
  accepted: ["done", "Accepted"],
  declined: ["cancelled", "Declined"],
  ready: ["done", "Ready"],
  failed: ["failed", "Failed"],
  stopped: ["cancelled", "Stopped"],
};

/** @type {Record<number, string>} */
const CODES = {
  [-32700]: "Parse error",
  [-32600]: "Invalid request",
  [-32601]: "Method not found",
  [-32602]: "Invalid params",
  [-32603]: "Internal error",
  [-32002]: "Not found",
  [-32042]: "Needs a visit",
};

export class Row {
  /** @param {Head} head */
  constructor(head) {
    this.seq = head.seq;
    this.at = head.at;
    this.kind = kindOf(head);
    this.leg = head.leg;
    this.direction = head.direction;
    this.peer = head.peer;
    this.server = head.leg === "client" ? "" : head.peer;
    this.client = head.leg === "client" ? head.peer : "";
    this.method = head.method ?? "";
    this.name = head.name ?? "";
    this.requestId = (head.id ?? "").replace(/^"|"$/g, "");
    this.size = head.size;
    this.revision = head.revision ?? "";
    this.messages = this.kind === "gap" ? 0 : 1;
    /** @type {number | null} */
    this.took = null;
    /** @type {RowStatus} */
    this.status = isCall(this.kind) ? "running" : "";
    this.word = "";
    /** @type {number | null} */
    this.code = null;
    /** @type {number | null} the number of the message that ended it */
    this.last = null;
    /** @type {Row | null} */
    this.parent = null;
    /** @type {Row[]} */
    this.children = [];
    this.arrived = 0;
    /** @type {import("../api").TaskNote | null} what was said last about the task that the call became */
    this.task = null;
    /** How many messages are missing here, for a gap. */
    this.missing = 0;
  }

  /** What plain words of a filter match. */
  get search() {
    return `${this.method} ${this.name} ${this.peer} ${this.server}`.toLowerCase();
  }

  get level() {
    let level = 1;
    for (let row = this.parent; row; row = row.parent) level += 1;
    return level;
  }

  get root() {
    /** @type {Row} */
    let row = this;
    while (row.parent) row = row.parent;
    return row;
  }

  /** @param {Head} head */
  end(head) {
    const [status, word] = STATUS[head.status ?? "done"] ?? ["done", "Done"];
    this.status = status;
    this.code = head.code ?? null;
    this.word = this.code !== null && status === "failed" ? (CODES[this.code] ?? (head.status === "rejected" ? `Error ${this.code}` : `${word} ${this.code}`)) : word;
    if (this.kind === "question" && head.status === "allowed") this.word = "Yes";
    if (this.kind === "question" && head.status === "denied") this.word = "No";
    this.took = head.took ?? (head.seq === this.seq ? null : head.at - this.at);
    // A decision is one message, written when it was made.
    if (head.seq === this.seq && this.kind === "policy") this.at = head.at - (head.took ?? 0);
    if (head.seq !== this.seq) {
      this.last = head.seq;
      this.size += head.size;
      this.messages += 1;
    }
  }
}

/** How the status of a task is shown. @type {Record<string, [RowStatus, string]>} */
const TASKS = {
  working: ["running", "Working"],
  input_required: ["running", "Needs input"],
  completed: ["done", "Completed"],
  failed: ["failed", "Failed"],
  cancelled: ["cancelled", "Cancelled"],
};

/**
 * The status of a task as a row shows it.
 * @param {string} status
 * @returns {[RowStatus, string]}
 */
export function taskStatus(status) {
  return TASKS[status] ?? ["", status];
}

/** The calls that became tasks, by the side of the host and the id there. @type {Map<string, Row>} */
const origins = new Map();

/** @param {Head} head @param {string} id */
function originKey(head, id) {
  return `${head.leg === "server" ? head.peer : ""} ${id}`;
}

/**
 * Notes what a message says about a task, at the call that became it and at those that caused it.
 * @param {Row} row the row of the message
 * @param {Head} head
 */
function note(row, head) {
  const { task } = head;
  if (task?.status === undefined) return;
  const key = originKey(head, task.id);
  if (row.kind === "call" && !row.method.startsWith("tasks/")) origins.set(key, row);
  const [status, word] = taskStatus(task.status);
  for (let each = origins.get(key) ?? null; each; each = each.parent) {
    if (each.kind !== "call" || each.method.startsWith("tasks/")) continue;
    each.task = task;
    if (each.last === null) {
      // It waits for the task itself.
      if (each.status === "running") each.word = word;
      continue;
    }
    if (each !== origins.get(key) || each.status === "cancelled" || each.status === "failed") continue;
    // It has its answer, and goes on as long as the task does.
    each.status = status;
    each.word = word;
    each.took = status === "running" ? null : Math.max(0, head.at - each.at);
    if (status === "running" && each.leg === "server") unanswered.set(each.seq, each);
    else unanswered.delete(each.seq);
    if (status !== "running") origins.delete(key);
  }
}

/** @param {RowKind} kind */
function isCall(kind) {
  return kind === "call" || kind === "question" || kind === "model";
}

/**
 * @param {Head} head
 * @returns {RowKind}
 */
function kindOf(head) {
  switch (head.kind) {
    case "request":
    case "response": return "call";
    case "notification": return head.method === "notifications/message" ? "log" : "notice";
    case "output":
    case "policy":
    case "question":
    case "model":
    case "state": return head.kind;
    default: return "other";
  }
}

/** Rows by the number of their first message. @type {Map<number, Row>} */
const rows = new Map();
/** Rows by the number of the message that ended them. @type {Map<number, Row>} */
const endings = new Map();
/** The rows without a parent, oldest first. @type {Row[]} */
export const roots = [];
/** Requests to servers that have no answer yet. @type {Map<number, Row>} */
const unanswered = new Map();
/** When servers said that a resource changed, by server and URI. @type {Map<string, number>} */
const updates = new Map();
const MAX_UPDATES = 1000;
let cursor = 0;
let messages = 0;

/** Grows whenever rows were added or changed. */
export const version = signal(0);

/** The number of the newest message that the page knows. */
export function newest() {
  return cursor;
}

/** How many messages the rows stand for. */
export function total() {
  return messages;
}

/** @param {number} seq the number of any message of the row */
export function find(seq) {
  return rows.get(seq) ?? endings.get(seq) ?? null;
}

/**
 * When a server said last that a resource changed.
 * @param {string} server
 * @param {string} uri
 */
export function updatedAt(server, uri) {
  return updates.get(JSON.stringify([server, uri])) ?? null;
}

/** @returns {IterableIterator<Row>} */
export function all() {
  return rows.values();
}

export function size() {
  return rows.size;
}

/** Forgets everything. */
export function clear() {
  rows.clear();
  endings.clear();
  unanswered.clear();
  origins.clear();
  roots.length = 0;
  messages = 0;
  version.update((n) => n + 1);
}

/**
 * Adds heads in the order in which they came.
 * @param {readonly Head[]} heads
 */
export function add(heads) {
  const now = performance.now();
  for (const head of heads) {
    if (head.seq > cursor) cursor = head.seq;
    const known = rows.get(head.seq);
    if (known) {
      update(known, head);
      continue;
    }
    messages += 1;
    if (head.method === "notifications/resources/updated" && head.leg === "server" && head.name !== undefined) {
      if (updates.size >= MAX_UPDATES) updates.clear();
      updates.set(JSON.stringify([head.peer, head.name]), head.at);
    }
    const ends = head.call !== undefined && head.call !== head.seq && (head.status !== undefined || head.kind === "response") && head.kind !== "notification";
    const call = head.call === undefined ? undefined : rows.get(head.call);
    if (ends && call) {
      call.end(head);
      unanswered.delete(call.seq);
      endings.set(head.seq, call);
      if (head.task) note(call, head);
      continue;
    }
    // A cancellation ends its call, and is a row of its own.
    if (call && head.kind === "notification" && head.status !== undefined && call.status === "running") {
      [call.status, call.word] = STATUS[head.status] ?? ["cancelled", "Cancelled"];
      call.took = head.took ?? head.at - call.at;
      unanswered.delete(call.seq);
    }
    const row = new Row(head);
    row.arrived = now;
    if (head.status !== undefined) row.end(head);
    else if (head.kind === "response") row.status = "done";
    const cause = call && call !== row ? call : head.parent === undefined ? undefined : rows.get(head.parent);
    rows.set(head.seq, row);
    if (cause) attach(row, cause);
    else roots.push(row);
    if (head.task && head.kind === "notification") note(row, head);
    if (head.kind === "request" && head.leg === "server" && head.direction === "out") unanswered.set(head.seq, row);
    else if (head.kind === "state" && (head.status === "failed" || head.status === "stopped")) abandon(head);
  }
  trim();
  version.update((n) => n + 1);
}

/**
 * Ends the calls of a server that ended: nobody answers them any more.
 * @param {Head} head
 */
function abandon(head) {
  for (const [seq, row] of unanswered) {
    if (row.peer !== head.peer) continue;
    unanswered.delete(seq);
    row.status = "failed";
    row.word = "No answer";
    row.took = head.at - row.at;
  }
}

/**
 * @param {Row} row
 * @param {Head} head
 */
function update(row, head) {
  row.name = head.name ?? row.name;
  row.method = head.method ?? row.method;
  if (head.peer !== "" && head.peer !== row.peer) {
    row.peer = head.peer;
    if (row.leg === "client") row.client = head.peer;
    else row.server = head.peer;
  }
  row.revision = head.revision ?? row.revision;
  if (head.status !== undefined && row.last === null) row.end(head);
  const cause = head.parent === undefined || row.parent ? undefined : rows.get(head.parent);
  if (cause && cause !== row && cause.root !== row) {
    const at = roots.lastIndexOf(row);
    if (at >= 0) roots.splice(at, 1);
    attach(row, cause);
  }
}

/**
 * @param {Row} row
 * @param {Row} cause
 */
function attach(row, cause) {
  row.parent = cause;
  cause.children.push(row);
  const top = row.root;
  // A client's call belongs to the server that it reached, and everything below it to the client.
  if (row.client === "") row.client = top.client;
  if (row.server !== "" && row.leg === "server") {
    for (let each = /** @type {Row | null} */ (cause); each; each = each.parent) if (each.server === "") each.server = row.server;
  } else if (row.server === "") row.server = top.server;
}

/**
 * Marks a place where messages are missing.
 * @param {readonly [number, number] | readonly number[]} range first and last number
 */
export function gap([first = 0, last = 0]) {
  if (last > cursor) cursor = last;
  const row = new Row({ seq: first, at: roots.at(-1)?.at ?? Date.now(), connection: 0, peer: "", leg: "host", direction: "in", kind: "other", size: 0 });
  row.kind = "gap";
  row.messages = 0;
  row.missing = last - first + 1;
  row.name = gapText(row.missing, roots.length === 0);
  rows.set(first, row);
  roots.push(row);
  version.update((n) => n + 1);
}

/**
 * @param {number} missing
 * @param {boolean} isFirst
 */
function gapText(missing, isFirst) {
  const count = `${missing.toLocaleString("en-US")} ${isFirst ? "older " : ""}${missing === 1 ? "message was" : "messages were"}`;
  return isFirst ? `${count} dropped: the buffer keeps the latest only` : `${count} dropped here: the page was too slow`;
}

/**
 * Joins gaps between which nothing is shown.
 * @param {Row} one
 * @param {Row} two
 * @returns {Row}
 */
export function joinGaps(one, two) {
  const missing = one.missing + two.missing;
  return Object.assign(Object.create(Row.prototype), one, { missing, name: gapText(missing, false) });
}

/** Drops the oldest trees when there are too many rows. */
function trim() {
  if (rows.size <= MAX_ROWS * 1.1) return;
  let from = 0;
  while (rows.size > MAX_ROWS && from < roots.length) {
    drop(/** @type {Row} */ (roots[from]));
    from += 1;
  }
  roots.splice(0, from);
}

/** @param {Row} row */
function drop(row) {
  rows.delete(row.seq);
  unanswered.delete(row.seq);
  if (row.task) for (const [key, origin] of origins) if (origin === row) origins.delete(key);
  if (row.last !== null) endings.delete(row.last);
  messages -= row.messages;
  for (const child of row.children) drop(child);
}

/**
 * Who is at both ends of a message.
 * @param {Row} row
 * @returns {[string, string]} the second is empty for what happens in one place
 */
export function ends(row) {
  if (row.kind === "policy") return ["policy", ""];
  if (row.kind === "question") return ["you", ""];
  if (row.kind === "model") return ["model", ""];
  if (row.kind === "output" || row.kind === "state") return [row.peer, ""];
  if (row.kind === "gap") return ["", ""];
  return row.direction === "in" ? [row.peer, "gateway"] : ["gateway", row.peer];
}

/** @typedef {"gateway" | "server" | "person" | "model"} Who */

/**
 * Who spent the time of a call: consecutive parts, from its own time and the time of what it caused.
 * @param {Row} row
 * @param {number} now
 * @returns {{ who: Who, from: number, until: number }[]}
 */
export function parts(row, now) {
  const start = row.at;
  const end = row.took !== null ? start + row.took : row.status === "running" ? Math.max(now, start) : start;
  const base = whoOf(row);
  /** @type {{ who: Who, from: number, until: number }[]} */
  const inner = [];
  collect(row, now, inner);
  // What is nested deeper wins: a person inside of a server's call is the person's time.
  const cuts = [...new Set([start, end, ...inner.flatMap((part) => [part.from, part.until])])].filter((at) => at >= start && at <= end).sort((a, b) => a - b);
  /** @type {{ who: Who, from: number, until: number }[]} */
  const result = [];
  for (let index = 0; index + 1 < cuts.length; index += 1) {
    const from = /** @type {number} */ (cuts[index]);
    const until = /** @type {number} */ (cuts[index + 1]);
    const middle = (from + until) / 2;
    const who = inner.findLast((part) => part.from <= middle && part.until >= middle)?.who ?? base;
    const before = result.at(-1);
    if (before && before.who === who) before.until = until;
    else result.push({ who, from, until });
  }
  return result;
}

/**
 * @param {Row} row
 * @param {number} now
 * @param {{ who: Who, from: number, until: number }[]} into
 */
function collect(row, now, into) {
  for (const child of row.children) {
    if (!isCall(child.kind) && child.kind !== "policy") continue;
    if (child.took === null && child.status !== "running") continue;
    into.push({ who: whoOf(child), from: child.at, until: child.took !== null ? child.at + child.took : now });
    collect(child, now, into);
  }
}

/**
 * @param {Row} row
 * @returns {Who}
 */
export function whoOf(row) {
  if (row.kind === "question" || row.method === "elicitation/create") return "person";
  if (row.kind === "model" || row.method === "sampling/createMessage") return "model";
  return row.leg === "server" && row.kind === "call" ? "server" : "gateway";
}

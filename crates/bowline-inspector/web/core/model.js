// What the host knows, as signals: servers, entries, questions. Each is queried again when its counter changes.
import { signal } from "./signal.js";
import { grade, key, query } from "./api.js";
import { assignHues } from "./text.js";
import * as stream from "./stream.js";
import * as store from "../traffic/store.js";

/** @typedef {import("../api").Overview} Overview */
/** @typedef {import("../api").Entries} Entries */
/** @typedef {import("../api").Inbox} Inbox */

export const overview = signal(/** @type {Overview | null} */ (null));
export const entries = signal(/** @type {Entries | null} */ (null));
export const inbox = signal(/** @type {Inbox | null} */ (null));

/** The clock of the host minus ours, in milliseconds. */
export const skew = signal(0);

/** Set while the host answers a query of the first load, for the line under the top bar. */
export const loading = signal(false);

/** The error of the latest query that failed. */
export const problem = signal(/** @type {string | null} */ (null));

/** Grows when a counter that no section here follows has changed, such as that of checks. */
export const changes = signal(0);

let known = /** @type {import("../api").Changed | null} */ (null);
let wantsEntries = false;

/**
 * Queries a section; of requests that overlap, one follows the first.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {(value: T) => void} use
 */
function section(ask, use) {
  /** @type {Promise<void> | null} */
  let running = null;
  let again = false;
  return async function refresh() {
    if (running) {
      again = true;
      return running;
    }
    running = (async () => {
      do {
        again = false;
        try {
          use(await ask());
          problem.set(null);
        } catch (error) {
          if (key.peek() !== null && stream.state.peek() === "live") problem.set(error instanceof Error ? error.message : String(error));
        }
      } while (again);
    })();
    await running;
    running = null;
  };
}

export const refreshOverview = section(
  () => query({ query: "overview" }),
  (/** @type {Overview} */ value) => {
    skew.set(value.now - Date.now());
    grade.set(value.grade === "control" ? "control" : "view");
    assignHues(value.servers.map((server) => server.name));
    overview.set(value);
  },
);
const refreshEntries = section(() => query({ query: "entries" }), (/** @type {Entries} */ value) => entries.set(value));
export const refreshInbox = section(() => query({ query: "inbox" }), (/** @type {Inbox} */ value) => inbox.set(value));

/** Entries are queried when a view needs them first, and again when they change. */
export function needEntries() {
  if (wantsEntries) return;
  wantsEntries = true;
  refreshEntries();
}

/** The present time of the host. */
export function hostNow() {
  return Date.now() + skew.peek();
}

/** @param {import("../api").Changed} next */
function changed(next) {
  const before = known;
  known = next;
  changes.update((n) => n + 1);
  if (!before || before.servers !== next.servers || before.clients !== next.clients || before.access !== next.access) refreshOverview();
  if ((!before || before.entries !== next.entries) && wantsEntries) refreshEntries();
  if (!before || before.inbox !== next.inbox) refreshInbox();
  if (before && before.cleared !== next.cleared) reload();
}

async function reload() {
  store.clear();
  let after = 0;
  for (;;) {
    const page = await query({ query: "calls", after });
    store.add(page.heads);
    if (!page.more || page.heads.length === 0) return;
    after = page.heads.at(-1).seq;
  }
}

/** Counters of Home follow the calls, with a pause so that a busy host is not asked all the time. */
let due = false;
function callsHappened() {
  if (due) return;
  due = true;
  setTimeout(() => {
    due = false;
    if (!document.hidden) refreshOverview();
  }, 1000);
}

/** Follows the stream. */
export function start() {
  const late = setTimeout(() => loading.set(overview.peek() === null), 300);
  refreshOverview().then(() => {
    clearTimeout(late);
    loading.set(false);
  });
  refreshInbox();
  stream.follow(
    store.newest,
    (event) => {
      if (Array.isArray(event.heads)) {
        store.add(event.heads);
        callsHappened();
      } else if (event.changed) changed(event.changed);
      else if (Array.isArray(event.gap)) store.gap(event.gap);
    },
    () => stream.state.set("gone"),
  );
}

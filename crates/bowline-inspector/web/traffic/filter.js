// The filter language of Traffic: `server:files took:>100ms -method:ping`.

/** @typedef {import("./store.js").Row} Row */
/**
 * @typedef {object} Term
 * @property {string} source the text of the term, as written
 * @property {string} word one of `WORDS`, or "" for plain text
 * @property {string} value
 * @property {boolean} negated
 * @property {"" | ">" | ">=" | "<" | "<="} compare
 * @property {string | null} problem why the term matches nothing
 */

/** The words, with what they compare. */
export const WORDS = /** @type {const} */ ({
  server: "the name of a server",
  client: "the name of a client",
  method: "a method, such as tools/call",
  name: "a tool, prompt or resource",
  status: "done, failed, running, cancelled or denied",
  took: "a duration: >100ms, <2s",
  size: "bytes of the message: >10kB",
  rev: "a revision, such as 2025-06-18 or 06",
  id: "the id of a request",
  kind: "call, notice, log, output, policy, question or model",
  body: "text inside messages",
});

const TIME = { us: 0.001, µs: 0.001, ms: 1, s: 1000, min: 60_000, m: 60_000 };
const SIZE = { b: 1, kb: 1000, kib: 1024, mb: 1_000_000, mib: 1_048_576 };

/**
 * Splits a filter into terms. Double quotes keep spaces together.
 * @param {string} text
 * @returns {Term[]}
 */
export function parse(text) {
  /** @type {Term[]} */
  const terms = [];
  for (const match of text.matchAll(/(-?)(?:([a-z]+):)?(?:"([^"]*)"?|(\S+))/gi)) {
    const [source, minus = "", word = "", quoted, bare] = match;
    const known = Object.hasOwn(WORDS, word.toLowerCase());
    const raw = quoted ?? bare ?? "";
    const value = word !== "" && !known ? `${word}:${raw}` : raw;
    if (value === "" && !known) continue;
    const term = /** @type {Term} */ ({ source, word: known ? word.toLowerCase() : "", value, negated: minus === "-", compare: "", problem: null });
    if (term.word === "took" || term.word === "size") readQuantity(term);
    terms.push(term);
  }
  return terms;
}

/** @param {Term} term */
function readQuantity(term) {
  const match = /^(>=|<=|>|<)?\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)$/i.exec(term.value);
  const units = /** @type {Record<string, number>} */ (term.word === "took" ? TIME : SIZE);
  const unit = (match?.[3] ?? "").toLowerCase() || (term.word === "took" ? "ms" : "b");
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined;
  if (!match || factor === undefined) {
    term.problem = term.word === "took" ? "write a duration, such as took:>100ms" : "write a size, such as size:>10kB";
    return;
  }
  term.compare = /** @type {Term["compare"]} */ (match[1] ?? ">=");
  term.value = String(Number(match[2]) * factor);
}

/**
 * Makes the test of one term.
 * @param {Term} term
 * @param {(text: string) => Set<number> | null} bodies the rows whose messages contain a text; `null` while it is searched
 * @returns {(row: Row) => boolean}
 */
function test(term, bodies) {
  const value = term.value.toLowerCase();
  if (term.problem || (value === "" && term.word !== "")) return () => true;
  switch (term.word) {
    case "server": return (row) => row.server.toLowerCase().includes(value);
    case "client": return (row) => row.client.toLowerCase().includes(value);
    case "method": return (row) => row.method.toLowerCase().includes(value);
    case "name": return (row) => row.name.toLowerCase().includes(value);
    case "status": return (row) => row.status.startsWith(value) || row.word.toLowerCase().includes(value);
    case "rev": return (row) => row.revision === value || row.revision.slice(5, 7) === value || row.revision.slice(0, value.length) === value;
    case "id": return (row) => row.requestId === term.value;
    case "kind": return (row) => row.kind.startsWith(value);
    case "took": return quantity(term, (row) => row.took);
    case "size": return quantity(term, (row) => row.size);
    case "body": {
      const found = bodies(term.value);
      return found === null ? () => true : (row) => found.has(row.seq) || (row.last !== null && found.has(row.last));
    }
    default: return (row) => row.search.includes(value);
  }
}

/**
 * @param {Term} term
 * @param {(row: Row) => number | null} read
 * @returns {(row: Row) => boolean}
 */
function quantity(term, read) {
  const limit = Number(term.value);
  return (row) => {
    const value = read(row);
    if (value === null) return false;
    if (term.compare === ">") return value > limit;
    if (term.compare === ">=") return value >= limit;
    return term.compare === "<" ? value < limit : value <= limit;
  };
}

/**
 * Makes the test of all terms together.
 * @param {readonly Term[]} terms
 * @param {(text: string) => Set<number> | null} [bodies]
 * @returns {(row: Row) => boolean}
 */
export function compile(terms, bodies = () => null) {
  const tests = terms.map((term) => {
    const matches = test(term, bodies);
    return term.negated && !term.problem ? (/** @type {Row} */ row) => !matches(row) : matches;
  });
  return (row) => tests.every((matches) => matches(row));
}

/**
 * The term without which the most rows would match.
 * @param {readonly Term[]} terms
 * @param {readonly Row[]} rows
 * @param {(text: string) => Set<number> | null} [bodies]
 * @returns {Term | null}
 */
export function strictest(terms, rows, bodies) {
  let best = null;
  let most = 0;
  for (const term of terms) {
    const matches = compile(terms.filter((each) => each !== term), bodies);
    let count = 0;
    for (const row of rows) if (matches(row)) count += 1;
    if (count > most) [best, most] = [term, count];
  }
  return best;
}

/**
 * Removes a term from the text of a filter.
 * @param {string} text
 * @param {Term} term
 */
export function without(text, term) {
  return parse(text).filter((each) => each.source !== term.source).map((each) => each.source).join(" ");
}

/**
 * Writes a term, with quotes where they are needed.
 * @param {string} word
 * @param {string} value
 */
export function write(word, value) {
  return `${word}:${/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value}`;
}

/**
 * What could be written at the end of a filter.
 * @param {string} text the text before the cursor
 * @param {{ servers: string[], clients: string[], methods: string[], names: string[], revisions: string[] }} known
 * @returns {{ text: string, hint: string }[]} whole filters with the completed term
 */
export function complete(text, known) {
  const last = /(-?)(?:([a-z]+):)?([^\s:]*)$/i.exec(text);
  if (!last) return [];
  const before = text.slice(0, last.index);
  const [, minus = "", word = "", start = ""] = last;
  if (word === "") {
    return Object.entries(WORDS)
      .filter(([name]) => name.startsWith(start.toLowerCase()))
      .map(([name, hint]) => ({ text: `${before}${minus}${name}:`, hint }));
  }
  const values = /** @type {Record<string, string[]>} */ ({
    server: known.servers,
    client: known.clients,
    method: known.methods,
    name: known.names,
    rev: known.revisions,
    status: ["done", "failed", "running", "cancelled", "denied"],
    kind: ["call", "notice", "log", "output", "policy", "question", "model"],
    took: [">10ms", ">100ms", ">1s"],
    size: [">1kB", ">10kB", ">100kB"],
  });
  const list = Object.hasOwn(values, word) ? (values[word] ?? []) : [];
  return list
    .filter((value) => value.toLowerCase().includes(start.toLowerCase()) && value !== start)
    .slice(0, 12)
    .map((value) => ({ text: `${before}${minus}${write(word, value)} `, hint: "" }));
}

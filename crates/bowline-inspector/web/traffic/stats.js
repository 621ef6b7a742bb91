// Statistics of the rows that a filter leaves: counts, percentiles, and how many there were when.

/** @typedef {import("./store.js").Row} Row */

/**
 * The value below which a part of the sorted values lies (nearest rank).
 * @param {readonly number[]} sorted
 * @param {number} part between 0 and 1
 * @returns {number | null}
 */
export function percentile(sorted, part) {
  if (sorted.length === 0) return null;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))] ?? null;
}

/**
 * @param {readonly Row[]} rows
 */
export function summarize(rows) {
  /** @type {number[]} */
  const times = [];
  let messages = 0;
  let calls = 0;
  let failed = 0;
  for (const row of rows) {
    messages += row.messages;
    if (row.kind !== "call") continue;
    calls += 1;
    if (row.status === "failed" || row.status === "denied") failed += 1;
    if (row.took !== null) times.push(row.took);
  }
  times.sort((a, b) => a - b);
  return { rows: rows.length, messages, calls, failed, p50: percentile(times, 0.5), p95: percentile(times, 0.95), p99: percentile(times, 0.99), times };
}

/**
 * Counts the times in buckets that double in length, so milliseconds and seconds fit in one picture.
 * @param {readonly number[]} times in milliseconds
 * @param {number} [buckets]
 */
export function histogram(times, buckets = 16) {
  const counts = new Array(buckets).fill(0);
  for (const time of times) {
    const bucket = Math.floor(Math.log2(Math.max(1, time * 16)));
    counts[Math.max(0, Math.min(buckets - 1, bucket))] += 1;
  }
  return counts;
}

/**
 * Counts rows by time.
 * @param {readonly Row[]} rows
 * @param {number} from
 * @param {number} until
 * @param {number} buckets
 * @returns {{ all: number[], failed: number[] }}
 */
export function timeline(rows, from, until, buckets) {
  const all = new Array(buckets).fill(0);
  const failed = new Array(buckets).fill(0);
  const length = Math.max(1, until - from);
  for (const row of rows) {
    if (row.at < from || row.at > until) continue;
    const bucket = Math.min(buckets - 1, Math.floor(((row.at - from) / length) * buckets));
    all[bucket] += 1;
    if (row.status === "failed") failed[bucket] += 1;
  }
  return { all, failed };
}

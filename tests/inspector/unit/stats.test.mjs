// Statistics of the filtered rows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { histogram, percentile, summarize, timeline } from "../../../crates/bowline-inspector/web/traffic/stats.js";

const row = (more) => ({ kind: "call", status: "done", took: 1, at: 0, messages: 2, ...more });

test("percentiles are values that occurred", () => {
  const sorted = Array.from({ length: 100 }, (_, index) => index + 1);
  assert.deepEqual([0.5, 0.95, 0.99, 1].map((part) => percentile(sorted, part)), [50, 95, 99, 100]);
  assert.equal(percentile([], 0.5), null);
  assert.equal(percentile([7], 0.01), 7);
});

test("calls count, other rows are messages only", () => {
  const stats = summarize([row({ took: 3 }), row({ took: 1, status: "failed" }), row({ kind: "log", messages: 1, took: null }), row({ took: null, status: "running", messages: 1 })]);
  assert.deepEqual([stats.calls, stats.failed, stats.messages, stats.p50], [3, 1, 6, 1]);
});

test("the histogram keeps every time", () => assert.equal(histogram([0.01, 1, 30, 5000, 1e9]).reduce((a, b) => a + b), 5));

test("the timeline counts what is inside", () => {
  const { all, failed } = timeline([row({ at: 0 }), row({ at: 99, status: "failed" }), row({ at: 100 }), row({ at: 101 })], 0, 100, 10);
  assert.deepEqual(all, [1, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
  assert.equal(failed[9], 1);
});

// Text of servers and figures.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, duration, hiddenCount, line, plural, remaining, segments } from "../../../crates/bowline-inspector/web/core/text.js";

test("hidden characters are shown by their code", () => {
  for (const [character, code] of [["\u202e", "U+202E"], ["\u200b", "U+200B"], ["\u{e0041}", "U+E0041"], ["\u0007", "U+0007"], ["\ufeff", "U+FEFF"], ["\u3164", "U+3164"], ["\u2066", "U+2066"], ["\u00ad", "U+00AD"], ["\ud800", "U+D800"]]) {
    assert.deepEqual(segments(`a${character}b`).map((part) => part.code ?? part.text), ["a", code, "b"]);
  }
  assert.equal(hiddenCount("a\u200b\u202eb"), 2);
});

test("ordinary text of all scripts is left alone", () => {
  for (const text of ["plain\n\ttext", "日本語", "العربية", "👩‍👩‍👧", "👍🏽", "❤️", "é"]) assert.equal(hiddenCount(text), 0, text);
});

test("a joiner between letters is shown", () => assert.equal(hiddenCount("pay\u200dpal"), 1));

test("a line is one line and has an end", () => {
  assert.equal(line("a\nb\u202ec"), "a b<U+202E>c");
  assert.equal(line("x".repeat(300), 10), `${"x".repeat(10)}…`);
});

test("figures have three digits at most", () => {
  assert.deepEqual([0.0004, 0.2, 1.23, 9.96, 212.4, 999.6, 3410, 12_345, 59_960, 125_000, 3_720_000].map(duration), ["0 µs", "200 µs", "1.2 ms", "10 ms", "212 ms", "1.00 s", "3.41 s", "12.3 s", "1 min 0 s", "2 min 5 s", "1 h 2 min"]);
  assert.deepEqual([0, 999, 1000, 9960, 999_960, 1_200_000].map(bytes), ["0 B", "999 B", "1.0 kB", "10 kB", "1.0 MB", "1.2 MB"]);
  assert.equal(plural(1, "call"), "1 call");
  assert.equal(plural(1204, "call"), "1,204 calls");
  assert.equal(remaining(252), "4:12");
});

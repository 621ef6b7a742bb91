// Signals, computed values and effects.
import assert from "node:assert/strict";
import { test } from "node:test";
import { batch, computed, effect, flush, scope, signal, untracked } from "../../../crates/bowline-inspector/web/core/signal.js";

test("an effect runs at once and again after a change", () => {
  const value = signal(1);
  const seen = [];
  effect(() => seen.push(value()));
  value.set(2);
  assert.deepEqual(seen, [1]);
  flush();
  assert.deepEqual(seen, [1, 2]);
});

test("several changes are one run", () => {
  const [a, b] = [signal(1), signal(1)];
  let runs = 0;
  effect(() => {
    a() + b();
    runs += 1;
  });
  batch(() => {
    a.set(2);
    b.set(2);
    a.set(3);
  });
  flush();
  assert.equal(runs, 2);
});

test("a computed value is computed once per change, and an equal one runs nothing", () => {
  const value = signal(1);
  let computations = 0;
  let runs = 0;
  const even = computed(() => {
    computations += 1;
    return value() % 2 === 0;
  });
  effect(() => {
    even();
    runs += 1;
  });
  value.set(3);
  flush();
  assert.deepEqual([computations, runs], [2, 1]);
  value.set(4);
  flush();
  assert.deepEqual([computations, runs], [3, 2]);
});

test("a scope ends everything inside", () => {
  const value = signal(1);
  let runs = 0;
  const [, end] = scope(() => {
    effect(() => {
      value();
      effect(() => {
        value();
        runs += 1;
      });
    });
  });
  end();
  value.set(2);
  flush();
  assert.equal(runs, 1);
});

test("an effect ends the effects of its last run", () => {
  const [outer, inner] = [signal(1), signal(1)];
  let runs = 0;
  effect(() => {
    outer();
    effect(() => {
      inner();
      runs += 1;
    });
  });
  outer.set(2);
  flush();
  inner.set(2);
  flush();
  assert.equal(runs, 3);
});

test("dependencies follow what was read last", () => {
  const [which, a, b] = [signal(true), signal("a"), signal("b")];
  const seen = [];
  effect(() => seen.push(which() ? a() : b()));
  which.set(false);
  flush();
  a.set("c");
  flush();
  assert.deepEqual(seen, ["a", "b"]);
});

test("untracked values are not followed", () => {
  const value = signal(1);
  let runs = 0;
  effect(() => {
    untracked(value);
    runs += 1;
  });
  value.set(2);
  flush();
  assert.equal(runs, 1);
});

test("a cycle ends", () => {
  const value = signal(0);
  effect(() => value.set(value() + 1));
  flush();
  assert.ok(value.peek() < 100);
});

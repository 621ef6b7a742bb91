// Rows of calls that become tasks, and of calls that are cancelled.
import assert from "node:assert/strict";
import { test } from "node:test";
import { add, clear, find, roots } from "../../../crates/bowline-inspector/web/traffic/store.js";

const head = (seq, more) => ({ seq, at: seq * 100, connection: 1, peer: "jobs", leg: "server", direction: "out", kind: "request", size: 10, ...more });
const answer = (seq, call, more) => head(seq, { kind: "response", direction: "in", call, status: "done", took: 1, ...more });
const task = (status, message) => ({ id: "t1", status, message });

test("a call goes on as long as its task", () => {
  clear();
  add([head(1, { leg: "client", direction: "in", peer: "page", method: "tools/call", call: 1 }), head(2, { method: "tools/call", call: 2, parent: 1 }), answer(3, 2, { task: task("working") })]);
  const [client, server] = [find(1), find(2)];
  assert.deepEqual([server.status, server.word, server.took], ["running", "Working", null]);
  assert.deepEqual([client.status, client.word], ["running", "Working"]);
  add([head(4, { method: "tasks/get", call: 4, parent: 1, task: { id: "t1" } }), answer(5, 4, { method: "tasks/get", task: task("input_required", "asks") })]);
  assert.deepEqual([server.status, server.word, client.task.message], ["running", "Needs input", "asks"]);
  // What is said about another task of that id at another server changes nothing.
  add([head(6, { peer: "other", method: "tasks/get", call: 6, task: { id: "t1" } }), answer(7, 6, { peer: "other", method: "tasks/get", task: task("failed") })]);
  assert.equal(server.status, "running");
  add([head(8, { method: "tasks/get", call: 8, parent: 1 }), answer(9, 8, { method: "tasks/get", task: task("completed") }), answer(10, 1, { leg: "client", direction: "out", peer: "page" })]);
  assert.deepEqual([server.status, server.word, server.took], ["done", "Completed", 700]);
  assert.deepEqual([client.status, client.word], ["done", "Done"]);
  assert.equal(roots.filter((row) => row.peer !== "other").length, 1);
});

test("a task of a client shows how it goes on after its answer", () => {
  clear();
  add([head(1, { leg: "client", direction: "in", peer: "editor", method: "tools/call", call: 1 }), answer(2, 1, { leg: "client", direction: "out", peer: "editor", task: task("working") })]);
  assert.equal(find(1).status, "running");
  add([head(3, { leg: "client", direction: "out", peer: "editor", kind: "notification", method: "notifications/tasks/status", call: 1, task: task("cancelled") })]);
  assert.deepEqual([find(1).status, find(1).took], ["cancelled", 200]);
});

test("a cancellation ends its call", () => {
  clear();
  add([head(1, { method: "tools/call", call: 1 }), head(2, { kind: "notification", method: "notifications/cancelled", call: 1, status: "cancelled", took: 100 })]);
  assert.deepEqual([find(1).status, find(1).took, find(1).children.length], ["cancelled", 100, 1]);
});

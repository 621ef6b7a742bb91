// The filter language.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compile, complete, parse, strictest, without, write } from "../../../crates/bowline-inspector/web/traffic/filter.js";

const row = (more) => ({ seq: 1, last: 2, at: 0, kind: "call", server: "files", client: "claude", method: "tools/call", name: "read_file", status: "done", word: "Done", took: 120, size: 500, revision: "2025-06-18", requestId: "7", search: "tools/call read_file files", messages: 2, ...more });
const check = (filter, matches, more = {}) => assert.equal(compile(parse(filter), (text) => (text === "milk" ? new Set([2]) : new Set()))(row(more)), matches, filter);

test("each word compares what it names", () => {
  check("server:files", true);
  check("server:web", false);
  check("client:CLAUDE", true);
  check("method:tools/call name:read", true);
  check("status:failed", false);
  check("status:failed", true, { status: "failed", word: "Tool error" });
  check("status:params", true, { status: "failed", word: "Invalid params" });
  check("rev:06", true);
  check("rev:2025-06-18", true);
  check("rev:2026", false);
  check("id:7", true);
  check("kind:notice", false);
  check("read_file", true);
  check("write", false);
});

test("durations and sizes have units and comparisons", () => {
  check("took:>100ms", true);
  check("took:>0.2s", false);
  check("took:<1s", true);
  check("took:>=120", true);
  check("took:>1ms", false, { took: null });
  check("size:>1kB", false);
  check("size:<=500", true);
});

test("minus negates, and a minus before nothing known is text", () => {
  check("-server:files", false);
  check("-method:ping", true);
  check("-took:>1s", true);
});

test("quotes keep spaces, and an unknown word is text", () => {
  check('name:"read file"', false);
  check('name:"read file"', true, { name: "read file" });
  check("file:x", false);
});

test("a search in bodies uses the numbers of the host", () => {
  check("body:milk", true);
  check("body:beer", false);
});

test("a term that cannot be read says so and excludes nothing", () => {
  const [term] = parse("took:>fast");
  assert.match(term.problem, /took:>100ms/);
  check("took:>fast", true);
});

test("the strictest term is the one whose removal helps most", () => {
  const rows = [row({}), row({ server: "web" }), row({ took: 5 })];
  assert.equal(strictest(parse("server:files took:>10s"), rows).source, "took:>10s");
  assert.equal(without("server:files took:>10s", parse("took:>10s")[0]), "server:files");
});

test("words and values are completed", () => {
  const known = { servers: ["files", "my files"], clients: [], methods: [], names: [], revisions: [] };
  assert.deepEqual(complete("ser", known).map((each) => each.text), ["server:"]);
  assert.deepEqual(complete("took:>1s -server:f", known).map((each) => each.text), ["took:>1s -server:files ", 'took:>1s -server:"my files" ']);
  assert.equal(write("name", 'a "b'), 'name:"a b"');
});

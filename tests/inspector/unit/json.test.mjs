// JSON as it was sent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { locate, parseExact, pretty, read, stringifyExact } from "../../../crates/bowline-inspector/web/core/json.js";

test("long numbers, double keys and escapes stay as sent", () => {
  const text = '{"a":12345678901234567890.10,"a":1e400,"b":"\\u0041\\/"}';
  assert.equal(pretty(text), '{\n  "a": 12345678901234567890.10,\n  "a": 1e400,\n  "b": "\\u0041\\/"\n}');
});

test("text that is not JSON is left alone", () => {
  for (const text of ["", "{", '{"a":}', "[1,]", "{'a':1}", "nul", '"abc', "1 2", "01x", "[".repeat(2000)]) {
    assert.equal(read(text), null, text.slice(0, 20));
    assert.equal(pretty(text), text);
  }
});

test("empty objects and lists stay short", () => assert.equal(pretty(' { "a" : [ ] , "b":{} } '), '{\n  "a": [],\n  "b": {}\n}'));

test("arguments keep the digits of their numbers", () => {
  const text = '{"n":12345678901234567890,"z":-0,"list":[1.50,null,"x"]}';
  assert.equal(stringifyExact(parseExact(text)), text);
});

test("the last of double keys counts, and __proto__ is a name like any other", () => {
  const value = parseExact('{"a":1,"__proto__":{"x":true},"a":2}');
  assert.ok(Object.hasOwn(value, "__proto__"));
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal(stringifyExact(value), '{"a":2,"__proto__":{"x":true}}');
});

test("absent members are left out, null is kept", () => assert.equal(stringifyExact({ a: undefined, b: null, c: "" }), '{"b":null,"c":""}'));

test("indented text reads back", () => {
  const value = { a: [1, { b: "c" }], d: {} };
  assert.equal(stringifyExact(value, "\n"), '{\n  "a": [\n    1,\n    {\n      "b": "c"\n    }\n  ],\n  "d": {}\n}');
  assert.deepEqual(JSON.parse(stringifyExact(value, "\n")), value);
});

test("a pointer finds its place", () => {
  const text = '{"a/b":[10,{"m~n":"x"}]}';
  const node = locate(text, read(text), "/a~1b/1/m~0n");
  assert.equal(text.slice(node.start, node.end), '"x"');
  assert.equal(locate(text, read(text), "/a~1b/7"), null);
});

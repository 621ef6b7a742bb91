// Hash routes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { format, parse } from "../../../crates/bowline-inspector/web/core/route.js";

test("places are written and read", () => {
  for (const [view, parts, query] of [["home", [], {}], ["server", ["files"], {}], ["explore", ["files", "tool", "write_file"], {}], ["explore", ["a/b", "resource", "file:///a b?c#d%41"], {}], ["traffic", [], { f: "server:files took:>1s" }], ["traffic", ["12"], { f: 'name:"a b" &=#' }]]) {
    const place = parse(format(view, parts, query));
    assert.deepEqual([place.view, place.parts, Object.fromEntries(place.query)], [view, parts, query]);
  }
});

test("odd addresses lead somewhere", () => {
  assert.equal(parse("").view, "home");
  assert.equal(parse("#").view, "home");
  assert.deepEqual(parse("#/server/%E0%A4%A").parts, ["%E0%A4%A"]);
});

test("a filter that is empty is not written", () => assert.equal(format("traffic", [], { f: "" }), "#/traffic"));

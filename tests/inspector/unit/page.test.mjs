// Rules for all files of the page: no sink for markup, no style attribute, no inline handler, no address of another host.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const web = new URL("../../../crates/bowline-inspector/web/", import.meta.url);
const files = readdirSync(web, { recursive: true }).filter((name) => /\.(js|css|html)$/.test(name)).map((name) => [name, readFileSync(new URL(name, web), "utf8")]);

test("no file has a way from text to markup or code", () => {
  for (const [name, text] of files) {
    const code = name === "core/dom.js" ? text.replace(/const FORBIDDEN = .*\n/, "") : text;
    for (const pattern of [/\.innerHTML|\.outerHTML|insertAdjacentHTML|\.srcdoc/, /document\.write/, /\beval\(|new Function\(/, / style="/, / on[a-z]+="/, /<script>/]) {
      assert.ok(!pattern.test(code), `${name} has ${pattern}`);
    }
  }
});

test("no file names another host", () => {
  for (const [name, text] of files) {
    const found = [...text.matchAll(/https?:\/\/[a-z][^\s"'`)]*/gi)].map(([url]) => url).filter((url) => url !== "http://www.w3.org/2000/svg");
    assert.deepEqual(found, [], name);
  }
});

test("the page is small", () => {
  const weigh = (list) => list.reduce((sum, [, text]) => sum + gzipSync(text, { level: 9 }).length, 0);
  const html = files.find(([name]) => name === "index.html")[1];
  const first = files.filter(([name]) => name === "index.html" || html.includes(`{{assets}}/${name}`));
  const [whole, load] = [weigh(files), weigh(first)];
  console.log(`whole page ${(whole / 1000).toFixed(1)} KB, first load ${(load / 1000).toFixed(1)} KB in ${first.length} files (gzip)`);
  assert.ok(whole <= 150_000 && load <= 60_000 && first.length <= 16, `${whole} ${load} ${first.length}`);
});

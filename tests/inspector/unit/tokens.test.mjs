// The contrast of every pair of colors that the page combines, computed from tokens.css.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const css = readFileSync(new URL("../../../crates/bowline-inspector/web/css/tokens.css", import.meta.url), "utf8");
const tokens = new Map([...css.matchAll(/--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g)].map(([, name, light, dark]) => [name, [light, dark]]));

function luminance(color) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) {
  const [x, y] = [luminance(a), luminance(b)].sort((one, two) => two - one);
  return (x + 0.05) / (y + 0.05);
}

test("text has a contrast of at least 5 on every surface, and borders of inputs 3.4", () => {
  for (const theme of [0, 1]) {
    for (const surface of ["canvas", "panel", "raised", "hover", "selected"]) {
      for (const text of ["text", "muted", "accent", "ok", "warn", "error", "info", "person"]) {
        const found = contrast(tokens.get(text)[theme], tokens.get(surface)[theme]);
        assert.ok(found >= 5.0 - 0.05, `${text} on ${surface}: ${found.toFixed(2)}`);
      }
      const border = contrast(tokens.get("control")[theme], tokens.get(surface)[theme]);
      assert.ok(border >= 3.4 - 0.05, `control on ${surface}: ${border.toFixed(2)}`);
    }
    assert.ok(contrast(tokens.get("on-accent")[theme], tokens.get("accent")[theme]) >= 5);
  }
});

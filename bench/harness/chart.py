"""Bar charts as SVG: one bar per server, its value beside it, ours in another color."""

from xml.sax.saxutils import escape

WIDTH, LABEL, BAR, GAP, TOP = 760, 210, 20, 8, 52
# Both themes are met by one file: pages that embed it pass on which one the reader prefers.
STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 15px } .unit, .note { fill: #57606a; font-size: 12px }
  .bar { fill: #8c959f } rect.floor { fill: #c4cbd3 } rect.ours { fill: #0b7285 }
  .name.ours, .value.ours { fill: #0b7285; font-weight: 600 } .axis { stroke: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .unit, .note { fill: #9198a1 }
    .bar { fill: #6e7681 } rect.floor { fill: #434a53 } rect.ours { fill: #3bc9db }
    .name.ours, .value.ours { fill: #3bc9db } .axis { stroke: #6e7681 }
  }
""".strip("\n")


def bars(title, unit, rows, lower_is_better=True):
    """`rows` are (name, value, text, kind), kind being `ours`, `floor` or anything else."""
    height = TOP + len(rows) * (BAR + GAP) + 8
    room = WIDTH - LABEL - 130
    most = max((value for _, value, _, _ in rows), default=1) or 1
    said = escape(f"{unit}, {'lower' if lower_is_better else 'higher'} is better")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"<title>{escape(title)}: {said}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<text class="title" x="12" y="22">{escape(title)}</text>',
        f'<text class="unit" x="12" y="40">{said}</text>',
    ]
    for number, (name, value, text, kind) in enumerate(rows):
        y = TOP + number * (BAR + GAP)
        long = max(2.0, room * value / most)
        kind = kind if kind in ("ours", "floor") else "peer"
        shade = {"ours": "ours", "floor": "floor"}.get(kind, "bar")
        out += [
            f'<text class="name {kind}" x="{LABEL - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{shade}" x="{LABEL}" y="{y}" width="{long:.1f}" height="{BAR}" rx="2"/>',
            f'<text class="value {kind}" x="{LABEL + long + 6:.1f}" y="{y + 15}">{escape(text)}</text>',
        ]
    out.append(f'<line class="axis" x1="{LABEL}" x2="{LABEL}" y1="{TOP - 4}" y2="{height - 8}"/>')
    out.append("</svg>")
    return "\n".join(out) + "\n"

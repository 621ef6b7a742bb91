"""Holds figures against targets.toml."""

import tomllib

from harness.figures import short
from harness.place import BENCH, say
from harness.tables import OURS


def check(sections, whole):
    """`sections` maps names to records. Tells each target, and whether all are met; in a `whole` run, also if one has no figure."""
    missed, unmeasured, told = [], [], {}
    for target in tomllib.loads((BENCH / "targets.toml").read_text())["target"]:
        records = sections.get(target["section"])
        if records is None:
            continue
        proto, cell, figure = target.get("proto"), target["cell"], target["figure"]
        who = target.get("who", OURS)
        values = records.values(who, proto, cell, figure)
        paired = target["section"] == "pairs"
        relative = "against" in target or "against_cell" in target
        base = 1
        if paired:
            paired = "difference" if target.get("difference") else "ratio"
            values = records.values(who, proto, cell, paired)
        elif relative:
            base = records.median(target.get("against", who), proto, target.get("against_cell", cell), figure)
        if not values or not base:
            unmeasured.append(target["what"])
            continue
        figure = paired or figure
        found = (max(values) if target.get("worst") else records.median(who, proto, cell, figure)) / base
        bound = target.get("at_most", target.get("at_least"))
        met = found <= bound if "at_most" in target else found >= bound
        unit = " µs more" if target.get("difference") else " ×" if relative else ""
        known = target.get("known")
        tolerated = known is not None and (found <= known if "at_most" in target else found >= known)
        verdict = "met" if met else "known" if tolerated else "MISSED"
        line = f"{verdict:6}  {short(found)}{unit}, at {'most' if 'at_most' in target else 'least'} {bound:,}  {target['what']}"
        told.setdefault(target["section"], []).append(line)
        if not met and tolerated:
            told[target["section"]].append(f"        {target['why']}")
        elif not met:
            missed.append(line)
    say("\ntargets")
    for line in sum(told.values(), []):
        say(f"  {line}")
    for what in unmeasured:
        say(f"  not measured  {what}")
    if missed:
        say(f"\n{len(missed)} missed:")
        for line in missed:
            say(f"  {line.removeprefix('MISSED  ')}")
    return not missed and not (whole and unmeasured), told

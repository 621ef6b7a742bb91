"""Reads callgrind's dumps: instructions by function."""

import collections
import re

NAME = re.compile(r"\((\d+)\)(?: (.*))?")
HASH = re.compile(r"::h[0-9a-f]{16}|\[[0-9a-f]{16}\]|'\d+$")


def functions(path):
    """Own instructions by function."""
    names, own = {}, collections.Counter()
    current, is_call = None, False

    def name(text):
        found = NAME.match(text)
        if not found:
            return HASH.sub("", text)
        if found[2]:
            names[found[1]] = HASH.sub("", found[2])
        return names.get(found[1], f"?{found[1]}")

    with open(path, errors="replace") as lines:
        for line in lines:
            if line.startswith("fn="):
                current = name(line[3:].rstrip())
            elif line.startswith("cfn="):
                name(line[4:].rstrip())
            elif line.startswith("calls="):
                # The next line holds what the callee cost, which is counted where it was spent.
                is_call = True
            elif line[:1].isdigit() or line[:1] in "+-*":
                cost = line.split()
                if not is_call and len(cost) > 1:
                    own[current] += int(cost[1])
                is_call = False
    return own


def per_request(few, many, requests):
    """Instructions by function and request, from dumps of so many more requests in one than in the other."""
    less, more = functions(few), functions(many)
    found = {name: (more[name] - less[name]) / requests for name in more}
    return {name: cost for name, cost in found.items() if abs(cost) >= 1}

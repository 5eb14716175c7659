#!/usr/bin/env python3
"""Checks that no room includes a header of a room it may not use (docs/architecture.md)."""

import pathlib
import re
import sys

MAY_USE = {
    "base": set(),
    "numerics": {"base"},
    "model": {"base", "numerics"},
    "step": {"base", "numerics", "model"},
    "cost": {"base", "numerics", "model", "step"},
    "planner": {"base", "numerics", "model", "step", "cost"},
    "runtime": {"base", "numerics", "model", "step"},
    "data": {"base"},
    "train": {"base", "numerics", "model", "step", "cost", "planner", "runtime", "data"},
    "jobs": {"base"},
    "cli": {"base", "numerics", "model", "step", "cost", "planner", "runtime", "data", "train",
            "jobs"},
}

root = pathlib.Path(__file__).resolve().parent.parent / "src" / "plimsoll"
wrong = 0
for path in sorted(root.rglob("*")):
    if path.suffix not in (".h", ".cc", ".cu"):
        continue
    room = path.relative_to(root).parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'#include "plimsoll/([a-z]+)/', line)
        if match and match[1] != room and match[1] not in MAY_USE[room]:
            print(f"{path}:{number}: {room}/ may not use {match[1]}/")
            wrong += 1
sys.exit(1 if wrong else 0)

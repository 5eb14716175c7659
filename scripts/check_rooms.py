#!/usr/bin/env python3
"""Checks that no room includes a header of a room it may not use (docs/architecture.md)."""

import pathlib
import re
import sys

STEP = {"base", "numerics", "model", "step"}
PLANNER = STEP | {"cost", "planner"}
TRAIN = PLANNER | {"config", "runtime", "data", "checkpoint", "report"}
MAY_USE = {
    "base": set(),
    "numerics": {"base"},
    "model": {"base", "numerics"},
    "step": {"base", "numerics", "model"},
    "config": STEP | {"data"},
    "cost": STEP,
    "planner": STEP | {"cost"},
    "runtime": STEP,
    "data": {"base"},
    "checkpoint": {"base", "numerics", "model"},
    "report": PLANNER,
    "train": TRAIN,
    "compare": TRAIN | {"train"},
    "jobs": {"base"},
    "cli": TRAIN | {"train", "compare", "jobs"},
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

"""Leaves out the tests that a list names. A pattern is a file, a test, or a test
with its parameters; a test without parameters stands for all of them, and `*`
for any characters. Tests are matched by their whole id, never by a beginning."""

import os
import re

import pytest


def _read(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                pattern, comment = line.rstrip("\n").split("  # ", 1)
                yield pattern.strip(), comment.split(":", 1)[0]


def _matcher(pattern):
    text = ".*".join(re.escape(part) for part in pattern.split("*"))
    return re.compile(text + r"(::.*|\[.*)?\Z", re.S)


def pytest_collection_modifyitems(config, items):
    rules = [(pattern, owner, _matcher(pattern)) for pattern, owner in _read(os.environ["QUEEN_LEFT_OUT"])]
    kept, dropped, used, counts = [], [], set(), {}
    for item in items:
        hit = next((rule for rule in rules if rule[2].match(item.nodeid)), None)
        if hit is None:
            kept.append(item)
        else:
            dropped.append(item)
            used.add(hit[0])
            counts[hit[1]] = counts.get(hit[1], 0) + 1
    unused = [pattern for pattern, _, _ in rules if pattern not in used]
    if unused and os.environ.get("QUEEN_LEFT_OUT_STRICT") == "1":
        raise pytest.UsageError("left-out.txt names no test with: " + ", ".join(unused))
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept
    config.stash[COUNTS] = counts


COUNTS = pytest.StashKey()


def pytest_terminal_summary(terminalreporter, config):
    counts = config.stash.get(COUNTS, {})
    for owner in sorted(counts):
        terminalreporter.write_line(f"left out until {owner}: {counts[owner]}")

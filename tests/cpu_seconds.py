"""CPU seconds of the tests of each algorithm, printed after a run: a new algorithm costs the suite seconds only."""

from collections import Counter
from pathlib import Path
from time import process_time

import pytest

CATALOGUE = {path.stem for path in (Path(__file__).parents[1] / "app" / "ml" / "algorithms").glob("[a-z]*.py")}
SHOWN = 10
"""Algorithms that are printed, the most expensive first."""


def algorithm_of(item):
    """The algorithm that a test is about, by its file or the first of its parameters that names one; else None."""
    names = [item.path.stem.removeprefix("test_")] if item.path.parent.name == "algorithms" else []
    if hasattr(item, "callspec"):
        names += item.callspec.id.split("-")
    return next((name for name in names if name in CATALOGUE), None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    began = process_time()
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_seconds", process_time() - began))
        item.user_properties.append(("algorithm", algorithm_of(item)))


def pytest_terminal_summary(terminalreporter):
    spent = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            properties = dict(getattr(report, "user_properties", ()))
            if getattr(report, "when", None) == "call" and properties.get("algorithm"):
                spent[properties["algorithm"]] += properties["cpu_seconds"]
    if spent:
        terminalreporter.section(f"CPU seconds of tests by algorithm ({sum(spent.values()):.0f} in all)")
        terminalreporter.line(", ".join(f"{name} {seconds:.1f}" for name, seconds in spent.most_common(SHOWN)))

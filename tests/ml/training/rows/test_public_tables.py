"""Public tables without and with planted leaks: every leak is named, and a clean table has at most one warning."""

import pytest

from tests.ml.training.rows.public_tables import TABLES, frame, misses, warnings_of

QUICK = {"iris", "ccard"}
WARNED = {"fair": "equal a training row", "grunfeld": "validation.group to 'firm'"}
"""Tables as they are that have a warning, and its words: equal rows beyond chance, and a firm in twenty years."""


def quick(name):
    return pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)


@pytest.mark.parametrize("name", [*map(quick, TABLES)])
def test_every_planted_leak_is_named(name):
    assert misses(name) == []


@pytest.mark.parametrize("name", [*map(quick, TABLES)])
def test_a_table_as_it_is_has_no_warning_that_is_not_true(name):
    _, warnings = warnings_of(frame(name), TABLES[name])
    assert [text for text in warnings if WARNED.get(name, "none") not in text] == []
    assert len(warnings) == (name in WARNED)


def test_there_are_twenty_tables():
    assert len(TABLES) == 20

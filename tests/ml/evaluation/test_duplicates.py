"""Copies of training rows among the test rows are counted, and warned of where chance does not explain them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ml.evaluation.duplicates import Copies
from app.ml.evaluation.splits import Split, kfold
from tests.ml.jobs.test_evaluate import Evaluated, iris

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def numbers(rows=600, copied=60, seed=0):
    """The last rows are copies of the first."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows - copied, 3))
    x = np.concatenate([x, x[:copied]])
    y = x @ [1.0, 2.0, 3.0] + np.concatenate([noise := rng.normal(size=rows - copied), noise[:copied]])
    return pa.table({**{f"x{place}": x[:, place] for place in range(3)}, "y": y})


def report(table, target="y", algorithm="linear", **validation):
    requested = {"target": target, "algorithm": {"name": algorithm}, "validation": validation}
    return Evaluated(table, **requested).trained.report


def warned(result):
    return [warning for warning in result.warnings if "in all columns used" in warning]


def test_copies_among_the_test_rows_are_counted_and_warned_of():
    result = report(numbers(), test_fraction=0.25)
    count = result.duplicates.test_rows
    assert 15 < count < 35
    assert result.duplicates.expected_test_rows < 0.01
    assert result.duplicates.validation_share is None
    (warning,) = warned(result)
    assert warning.startswith(f"{count} of 150 test rows equal a training row in all columns used. If these are copies")
    assert "validation.group" in warning


@pytest.mark.parametrize("method", ["kfold", "loo", "bootstrap"])
def test_copies_among_folds_are_warned_of(method):
    result = report(numbers(), test_fraction=0.0, method=method, resamples=10)
    share = result.duplicates.validation_share
    expected = {"kfold": 0.2 * 4 / 5, "loo": 0.2, "bootstrap": 0.2 * (1 - np.exp(-1))}[method]
    assert share == pytest.approx(expected, abs=0.03)
    (warning,) = warned(result)
    assert f"In cross-validation {share:.1%} of the evaluated rows" in warning


def test_groups_that_hold_the_copies_together_leave_nothing_to_warn_of():
    table = numbers()
    names = np.arange(600)
    names[540:] = names[:60]
    for method in ("kfold", "bootstrap"):
        result = report(table.append_column("who", pa.array(names)), group="who", method=method, resamples=10)
        assert (result.duplicates.test_rows, result.duplicates.validation_share) == (0, 0.0)
        assert not warned(result)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_single_pair_of_iris_is_no_alarm(seed):
    result = Evaluated(
        iris(), algorithm={"name": "decision_tree"}, validation={"method": "kfold"}, seed=seed
    ).trained.report
    assert result.duplicates.test_rows + result.duplicates.validation_share > 0
    assert not warned(result)


def test_rows_that_chance_makes_equal_are_no_alarm():
    """Four columns of few values: nearly every row has equal ones, and none was copied."""
    rng = np.random.default_rng(0)
    few = {name: rng.choice(["a", "b", "c"], 2000) for name in ("sex", "class", "age")}
    table = pa.table({**few, "y": rng.choice(["yes", "no"], 2000)})
    result = report(table, algorithm="decision_tree", method="kfold")
    assert result.duplicates.test_rows == 400
    assert result.duplicates.expected_test_rows == pytest.approx(400, abs=1)
    assert result.duplicates.validation_share == 1
    assert not warned(result)


@QUICK
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), min_size=4, max_size=40), st.integers(0, 3))
def test_equal_rows_are_counted_as_brute_force_counts_them(rows, seed):
    numbers, words = zip(*rows, strict=True)
    table = pa.table({"x": np.array(numbers, float), "y": words})
    splits = kfold(len(rows), 3, np.random.default_rng(seed))
    first = splits[0]
    copies = Copies.look(table, np.arange(len(rows)), ["x"], "y", train=first.train)

    def brute(split: Split) -> int:
        learned = {rows[place] for place in split.train}
        return sum(rows[place] in learned for place in split.test)

    assert copies.equal(first).rows == brute(first)
    assert copies.across(splits).rows == sum(map(brute, splits))
    assert copies.alone().rows == sum(rows.count(row) > 1 for row in rows)
    assert ((copies.chance >= 0) & (copies.chance <= 1)).all()

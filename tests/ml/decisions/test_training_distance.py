"""Distance of inputs to the rows of a table, of numbers, categories, moments and missing values."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.columns import InputColumn
from app.ml.decisions.training_distance import TrainingDistance

KINDS = {"x": "numeric", "c": "categorical", "b": "boolean", "t": "datetime"}
DAY = 86_400_000_000
TABLE = pa.table({
    "x": [1.0, 2.0, None, 3.0],
    "c": ["u", None, "v", "u"],
    "b": [True, False, True, None],
    "t": pa.array([0, DAY, 2 * DAY, 3 * DAY], pa.timestamp("us", "UTC")),
})  # fmt: skip


def distance(*names, table=TABLE):
    return TrainingDistance.of([InputColumn(name=name, kind=KINDS[name]) for name in names], table)


def nearest(of, **row):
    (found,) = of.nearest([row])
    return found.row, found.distance


def test_numbers_count_in_standard_deviations():
    deviation = np.std([1.0, 2.0, 3.0])
    assert nearest(distance("x"), x=2.4) == (1, pytest.approx(0.4 / deviation))
    assert nearest(distance("x"), x=None) == (2, 0.0)


def test_categories_count_as_one():
    assert nearest(distance("c"), c="v") == (2, 0.0)
    assert nearest(distance("c"), c=None) == (1, 0.0)
    assert nearest(distance("c"), c="w") == (0, 1.0)
    assert nearest(distance("b"), b=False) == (1, 0.0)


def test_moments_count_in_standard_deviations():
    deviation = np.std([0, 1, 2, 3])
    assert nearest(distance("t"), t="1970-01-03T06:00:00Z") == (2, pytest.approx(0.25 / deviation))


def test_all_inputs_count():
    row = {"x": 2.0, "c": "u", "b": True, "t": "1970-01-01T00:00:00Z"}
    assert nearest(distance(*KINDS), **row) == (0, pytest.approx(1 / np.std([1.0, 2.0, 3.0])))


def test_the_usual_distance_is_that_of_neighbouring_rows():
    x = np.arange(10.0)
    assert distance("x", table=pa.table({"x": x})).usual == pytest.approx(1 / x.std())
    assert distance("x", table=pa.table({"x": [4.0]})).usual is None
    assert distance("x", table=pa.table({"x": [4.0, 4.0]})).usual == 0

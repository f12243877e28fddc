"""Bins of columns: between quantiles, at levels, around constants, and counts of later rows in them."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.columns import ColumnKind
from app.ml.monitoring.column_bins import count_cells, reference_column

NUMERIC, CATEGORICAL = ColumnKind.NUMERIC, ColumnKind.CATEGORICAL


def counted(column, values):
    found = count_cells(column, pa.chunked_array([pa.array(values)]))
    return found.counts.tolist(), found.missing


@pytest.mark.parametrize(("rows", "bins"), [(10_000, 20), (5_000, 10), (1_000, 5), (60, 5)])
def test_numbers_have_equal_bins_and_fewer_of_few_rows(rows, bins):
    values = np.random.default_rng(0).normal(size=rows)
    column = reference_column("x", NUMERIC, pa.chunked_array([values]))
    assert len(column.counts) == bins
    assert max(column.counts) - min(column.counts) <= 1
    assert counted(column, values) == (column.counts, 0.0)


def test_ties_share_a_bin_and_gaps_are_counted_beside():
    values = [0.0] * 90 + [1.0, 2.0, 3.0, 4.0, 5.0] + [None] * 5
    column = reference_column("x", NUMERIC, pa.chunked_array([pa.array(values)]))
    assert (column.edges, column.counts, column.missing) == ([0.0], [90.0, 5.0], 5.0)
    assert column.labels == ["up to 0", "above 0"]


def test_a_constant_has_bins_on_both_sides():
    column = reference_column("x", NUMERIC, pa.chunked_array([np.full(100, 7.0)]))
    assert column.counts == [0.0, 100.0, 0.0]
    assert counted(column, [6.9, 7.0, 7.0, 7.1]) == ([1.0, 2.0, 1.0], 0.0)


def test_levels_beyond_the_bins_are_others():
    texts = [f"level {place}" for place in range(8) for _ in range(8 - place)]
    column = reference_column("x", CATEGORICAL, pa.chunked_array([pa.array(texts)]))
    assert column.levels == [f"level {place}" for place in range(5)]
    assert (column.counts, column.complete) == ([8.0, 7.0, 6.0, 5.0, 4.0, 6.0], False)
    assert counted(column, ["level 0", "level 7", "new", None]) == ([1.0, 0, 0, 0, 0, 2.0], 1.0)


def test_few_levels_are_complete():
    column = reference_column("x", CATEGORICAL, pa.chunked_array([pa.array(["a", "b", "a", None])]))
    assert (column.levels, column.counts, column.missing, column.complete) == (["a", "b"], [2.0, 1.0, 0.0], 1.0, True)


def test_booleans_have_two_bins():
    column = reference_column("x", ColumnKind.BOOLEAN, pa.chunked_array([pa.array([True, False, False])]))
    assert column.counts == [2.0, 1.0]


def test_a_column_without_values_has_one_empty_bin():
    column = reference_column("x", NUMERIC, pa.chunked_array([pa.array([None, None], pa.float64())]))
    assert (column.counts, column.missing, column.labels) == ([0.0], 2.0, ["all"])

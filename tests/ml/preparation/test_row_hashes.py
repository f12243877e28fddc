"""Equal rows have equal hashes, and different rows different ones, whatever else differs between two tables."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InvalidData
from app.ml.preparation.row_hashes import row_hashes

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
numbers = st.none() | st.sampled_from([0.0, -0.0, 1.0, 2.0**60, 5e-324]) | st.floats(-3, 3)
words = st.none() | st.sampled_from(["", "a", "b", "ä", "1"])
rows_of_tables = st.lists(st.tuples(numbers, numbers, words, st.none() | st.booleans()), min_size=1, max_size=30)
NAMES = ("x", "y", "word", "flag")
TYPES = (pa.float64(), pa.float64(), pa.string(), pa.bool_())


def table_of(rows, names=NAMES, types=TYPES):
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(column, kind) for name, kind, column in zip(names, types, columns, strict=True)})


def hashes_of(table, features=NAMES[:3], target="flag"):
    return row_hashes(table, features, target).tolist()


@QUICK
@given(rows_of_tables)
def test_rows_are_equal_if_and_only_if_their_hashes_are(rows):
    hashes = hashes_of(table_of(rows))
    equal = [[one == other for other in rows] for one in rows]
    assert [[one == other for other in hashes] for one in hashes] == equal


@QUICK
@given(rows_of_tables, st.randoms())
def test_neither_order_nor_chunks_nor_neighbours_matter(rows, random):
    before = dict(zip(rows, hashes_of(table_of(rows)), strict=True))
    mixed = [*random.sample(rows, len(rows)), (0.5, 0.5, "new", True)]
    chunked = pa.concat_tables([table_of([row]) for row in mixed])
    after = dict(zip(mixed, hashes_of(chunked.select(["flag", "word", "y", "x"]), ["word", "y", "x"]), strict=True))
    assert {row: after[row] for row in before} == before


def test_whole_numbers_are_the_same_as_integers_and_as_floats():
    whole, floats = (pa.table({"x": pa.array([0, 7, None], kind)}) for kind in (pa.int64(), pa.float64()))
    assert hashes_of(whole, ["x"], None) == hashes_of(floats, ["x"], None)
    gaps = pa.table({"x": pa.array([np.nan, None], from_pandas=False)})
    assert len(set(hashes_of(gaps, ["x"], None))) == 1


def test_columns_are_separated_by_name_but_the_target():
    table = pa.table({"a": [1.0], "b": [2.0], "truth": [1.0]})
    swapped = pa.table({"a": [2.0], "b": [1.0], "actual": [1.0]})
    both = hashes_of(table, ["a", "b"], "truth")
    assert both != hashes_of(swapped, ["a", "b"], "actual")
    assert both == hashes_of(table.rename_columns(["a", "b", "y"]), ["b", "a"], "y")
    assert both != hashes_of(table, ["a", "b", "truth"], None)
    assert hashes_of(table, ["a"], None) != hashes_of(table.rename_columns(["c", "b", "y"]), ["c"], None)


def test_the_hashes_are_those_of_every_release():
    """Models keep them: another hash would recognise no training row."""
    table = table_of([(1.5, None, "ä", True), (0.0, 2.0, None, None)])
    assert hashes_of(table) == [5429246076912441565, 8537793217086040773]


def test_infinite_numbers_are_refused():
    with pytest.raises(InvalidData, match="infinite"):
        hashes_of(pa.table({"x": [1.0, np.inf]}), ["x"], None)

"""Rows of the matrix back in the units and categories of the table."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.algorithm import Accepts
from app.ml.contract.columns import ColumnKind
from app.ml.preparation.arrow_columns import Raw, RawColumn
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.restoring import restore

WHEN = [datetime(2024, 2, 29, 12, 30, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)]
TABLE = pa.table(
    {
        "area": [50.0, 71.5, 120.25] * 2,
        "balcony": [True, False, False] * 2,
        "built": pa.array(WHEN * 2, pa.timestamp("us", "UTC")),
        "quarter": ["Altona", "Barmbek", None] * 2,
    }
)
KINDS = [ColumnKind.NUMERIC, ColumnKind.BOOLEAN, ColumnKind.DATETIME, ColumnKind.CATEGORICAL]


def prepared(how=None, accepts=(), table=TABLE):
    columns = [RawColumn(name, kind, None, None) for name, kind in zip(table.column_names, KINDS, strict=True)]
    raw = Raw.read(table, columns)
    return Preparation.fit(raw, np.arange(table.num_rows), how or Preprocessing(), accepts)


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
@pytest.mark.parametrize("accepts", [(), (Accepts.MISSING, Accepts.CATEGORIES)], ids=["indicators", "codes"])
def test_a_row_of_the_table_comes_back(scaling, accepts):
    preparation = prepared(Preprocessing(scaling=scaling), accepts)
    rows = restore(preparation, preparation.matrix(preparation.raw(TABLE)))
    for row, expected in zip(rows, TABLE.to_pylist(), strict=True):
        assert row.values.pop("area") == pytest.approx(expected.pop("area"), rel=1e-12)
        assert datetime.fromisoformat(row.values.pop("built")).timestamp() == pytest.approx(
            expected.pop("built").timestamp(), abs=1e-3
        )
        assert row.values == expected
        assert row.shares["balcony"] == pytest.approx(1)
        assert row.shares["quarter"] == (0.0 if accepts and expected["quarter"] is None else 1.0)


def test_a_mean_of_rows_has_the_most_frequent_category_and_its_share():
    preparation = prepared(Preprocessing(scaling="standard"))
    mean = preparation.matrix(preparation.raw(TABLE.slice(1, 4))).mean(axis=0, keepdims=True)
    (row,) = restore(preparation, mean)
    assert row.values["area"] == pytest.approx((71.5 + 120.25 + 50 + 71.5) / 4)
    assert (row.values["quarter"], row.shares["quarter"]) == ("Barmbek", 0.5)
    assert (row.values["balcony"], row.shares["balcony"]) == (False, pytest.approx(0.75))


def test_what_the_matrix_does_not_hold_is_null():
    read = {"kind": "expression", "expression": "log(area)"}
    preparation = prepared(Preprocessing(basis=[read], keep_inputs=False))
    row = restore(preparation, preparation.matrix(preparation.raw(TABLE)))[0]
    assert row.values["area"] is None
    assert row.values["quarter"] == "Altona"
    far = np.full((1, preparation.layout.width), 1e300)
    assert restore(preparation, far)[0].values["built"] is None

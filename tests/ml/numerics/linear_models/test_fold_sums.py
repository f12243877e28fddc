"""Sums of products of sparse rows are those of the same rows in an array."""

import numpy as np
import pytest
import scipy

from app.ml.contract.algorithm import Data, Task
from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.linear_models.fold_sums import Sums, mean_point


@pytest.mark.parametrize("away", [0.0, 1e7])
def test_sums_of_sparse_rows_keep_their_digits_however_far_away_a_column_is(away):
    rng = np.random.default_rng(0)
    x = (rng.random((500, 12)) < 0.1).astype(float)
    x[:, :2] = away + rng.normal(size=(500, 2))
    y, weights = x[:, 0] + x[:, 4] + rng.normal(size=500), rng.uniform(0.5, 2, 500)
    plain, few = (
        Data.of(Task.REGRESSION, rows, y, weights=weights) for rows in (x, SparseRows(scipy.sparse.csr_array(x)))
    )
    origin, some = mean_point(plain), np.arange(0, 500, 3)
    for rows in (None, some):
        expected, found = Sums.of(plain, origin, rows), Sums.of(few, origin, rows)
        unit = np.sqrt(expected.gram.diagonal())
        np.testing.assert_allclose(found.gram / unit / unit[:, None], expected.gram / unit / unit[:, None], atol=1e-12)
        np.testing.assert_allclose(found.product / unit, expected.product / unit, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.inputs / unit, expected.inputs / unit, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[2:3] + found[4:], expected[2:3] + expected[4:], rtol=1e-12, atol=1e-6)

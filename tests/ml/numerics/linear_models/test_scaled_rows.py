"""Products of sparse rows in coordinates of their own are those of the array that they stand for."""

import numpy as np
import scipy

from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.linear_models.scaled_rows import ScaledRows


def test_products_are_those_of_the_array():
    rng = np.random.default_rng(0)
    x = rng.poisson(0.3, size=(7, 5)).astype(float)
    mean, unit = x.mean(axis=0), rng.uniform(0.5, 2, 5)
    rows = ScaledRows(SparseRows(scipy.sparse.csr_array(x)), mean, unit, 1.0)
    array = np.column_stack([(x - mean) / unit, np.ones(7)])
    points, pull = rng.normal(size=(6, 3)), rng.normal(size=(7, 3))
    assert rows.shape == array.shape
    np.testing.assert_allclose(rows @ points, array @ points, rtol=0, atol=1e-14)
    np.testing.assert_allclose(rows.T @ pull, array.T @ pull, rtol=0, atol=1e-14)

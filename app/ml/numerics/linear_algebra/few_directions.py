"""The few directions along which centred rows vary most, by products of the rows with themselves.

The nonzero eigenvalues of XᵀX are those of XXᵀ, so the smaller of the two is meant, and at first not formed: the
iteration takes products with X and with Xᵀ, which is quicker where the eigenvalues lie apart. Where it goes on for
longer than forming the matrix takes, the matrix is formed, and its products go on. Squaring costs small eigenvalues
half their digits: when one that is wanted is too small for that, there is no result.

Reference: Jolliffe (2002), Principal Component Analysis, section 3.5.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.linear_algebra.block_krylov import Eigenpairs, block_of, is_worth_it, largest_eigenpairs

TRUSTED = 1e-8
"""A product matrix holds every eigenvalue to one rounding of the largest: below this share few digits are left."""
TRUSTED_OF_ITERATION = 1e-5
"""The same of the iteration, whose residuals are a little above rounding."""
GAIN_OF_LARGE_PRODUCTS = 3.2
"""Operations of a product of two large matrices take so many times less time than those of one with a few vectors."""
MIN_STEPS = 5
"""Steps that the iteration takes at the least: a matrix that is formed in less time is formed at once."""


class Products:
    """Products of XᵀX or XXᵀ, the smaller, with blocks of vectors."""

    def __init__(self, rows: Matrix, count: int) -> None:
        """rows: (n, d) X. count: number of eigenpairs that are wanted."""
        self.rows, (n, d) = rows, rows.shape
        self.size, self.wide, self.formed = min(n, d), n < d, np.zeros((0, 0))
        self.steps = steps_before_forming((n, d), count)

    def __call__(self, block: Matrix) -> Matrix:
        if not self.formed.size and self.steps > 0:
            self.steps -= 1
            return (block @ self.rows) @ self.rows.T if self.wide else (block @ self.rows.T) @ self.rows
        return block @ self.matrix()

    def matrix(self) -> Matrix:
        if not self.formed.size:
            self.formed = self.rows @ self.rows.T if self.wide else self.rows.T @ self.rows
        return self.formed


def steps_before_forming(shape: tuple[int, int], count: int) -> int:
    """Steps after which forming the matrix would have cost no more than not forming it; 0 if they are few."""
    smaller, larger = min(shape), max(shape)
    steps = smaller * larger / (GAIN_OF_LARGE_PRODUCTS * 2 * block_of(count) * (2 * larger - smaller))
    return int(steps) if steps >= MIN_STEPS else 0


def few_directions(rows: Matrix, count: int) -> Eigenpairs | None:
    """The `count` largest eigenvalues of XᵀX of rows X (n, d), and their directions; fewer than min(n, d).

    None: one of them is too small to be trusted.
    """
    products = Products(rows, count)
    pairs = largest_eigenpairs(products, products.size, count) if is_worth_it(products.size, count) else None
    if pairs is None or not is_trusted(pairs, TRUSTED_OF_ITERATION):
        last = products.size - 1
        values, vectors = scipy.linalg.eigh(
            products.matrix(), subset_by_index=(last - count + 1, last), check_finite=False
        )
        pairs = Eigenpairs(values[::-1], vectors.T[::-1])
    if not is_trusted(pairs, TRUSTED):
        return None
    if not products.wide:
        return pairs
    directions = pairs.vectors @ rows
    return Eigenpairs(pairs.values, directions / np.linalg.norm(directions, axis=1, keepdims=True))


def is_trusted(pairs: Eigenpairs, share: float) -> bool:
    return bool(pairs.values[-1] > share * pairs.values[0])

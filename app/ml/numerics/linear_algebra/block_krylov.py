"""The few largest eigenvalues of a large symmetric matrix, to rounding, from products of it with blocks of vectors.

Block Lanczos: from a block of drawn vectors the space of its products grows until the residuals ‖Av − λv‖ of the wanted
pairs are rounding. Every block is made orthogonal to the whole space twice, so that no pair comes back as a copy of
itself; a space that has grown large begins again from its best vectors (thick restart). The block is wider than the
number of wanted pairs, so that eigenvalues of any multiplicity are met. The draws do not depend on anything, so the
same matrix gives the same pairs.

References: Golub & Underwood (1977), Mathematical Software III: 361; Wu & Simon (2000), SIAM J. Matrix Anal. Appl.
22:602; Musco & Musco (2015), NeurIPS: 1396.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector

EXTRA_VECTORS = 12
"""Vectors in a block beside the number of wanted pairs: they separate these from the next ones."""
BLOCKS_IN_SPACE = 8
"""Blocks that the space holds before it begins again."""
MIN_SPACE = 160
MIN_SPACES_IN_MATRIX = 2
"""A matrix is at least so many times as large as the space; a smaller one is decomposed whole, which is as quick."""
MIN_SPACES_TO_GO_ON = 3
"""The same of a matrix for which the space begins again."""
MIN_STEPS = 15
SHARE_OF_STEPS = 1 / 3000
"""Steps, as a share of the squared size over the vectors of a block, after which the iteration gives up: a
decomposition of the whole matrix is then the quicker way."""
FIRST_STEPS = 8
"""The first steps are checked two at a time, later ones three at a time."""
RESIDUAL = 1e-12
"""Residual of a pair, as a share of the largest eigenvalue, that counts as rounding."""


class Eigenpairs(NamedTuple):
    values: Vector
    """(p,) descending."""
    vectors: Matrix
    """(p, m) orthonormal rows."""


def block_of(count: int) -> int:
    return count + EXTRA_VECTORS


def is_worth_it(size: int, count: int) -> bool:
    """True if so few of the eigenvalues of a (size, size) matrix are wanted that the iteration is the quicker way."""
    return _space(count) * MIN_SPACES_IN_MATRIX <= size


def largest_eigenpairs(multiply: Callable[[Matrix], Matrix], size: int, count: int) -> Eigenpairs | None:
    """The `count` largest eigenpairs of a symmetric positive semidefinite matrix A (size, size).

    multiply: the product VA, (b, size), of rows V (b, size). None: the residuals are not yet small when a
    decomposition of the whole matrix would have taken as long.
    """
    width, most = block_of(count), _space(count)
    basis, projected = np.empty((most + width, size)), np.zeros((most + width, most + width))
    basis[:width], used = _orthonormal(np.random.default_rng(0).normal(size=(width, size)))[0], 0
    for step in range(max(int(SHARE_OF_STEPS * size * size / width), MIN_STEPS)):
        product = multiply(basis[used : used + width])
        used += width
        space = basis[:used]
        inner = product @ space.T
        product -= inner @ space
        projected[used - width : used, :used], projected[:used, used - width : used] = inner, inner.T
        block, triangle = _orthonormal(product)
        block, again = _orthonormal(block - (block @ space.T) @ space)
        full = used + width > most
        if not full and step % (2 if step < FIRST_STEPS else 3):
            basis[used : used + width] = block
            continue
        values, vectors = scipy.linalg.eigh(projected[:used, :used], check_finite=False)
        values, vectors = values[::-1], vectors[:, ::-1]
        coupling = again.T @ triangle.T @ vectors[used - width :]
        if (np.linalg.norm(coupling[:, :count], axis=0) <= RESIDUAL * values[0]).all():
            return Eigenpairs(values[:count], vectors[:, :count].T @ space)
        if full and size < MIN_SPACES_TO_GO_ON * most:
            return None
        if full:
            used = count + width // 2
            basis[:used] = vectors[:, :used].T @ space
            projected[:] = np.diag(np.append(values[:used], np.zeros(len(projected) - used)))
        basis[used : used + width] = block
    return None


def _space(count: int) -> int:
    return max(BLOCKS_IN_SPACE * block_of(count), MIN_SPACE)


def _orthonormal(rows: Matrix) -> tuple[Matrix, Matrix]:
    """Orthonormal rows (b, m) of the same span, and the triangle T (b, b) with rows = Tᵀ × orthonormal rows."""
    columns, triangle = np.linalg.qr(rows.T)
    return columns.T, triangle

r"""Classical scaling: places whose inner products are those that squared dissimilarities imply.

About their weighted mean the inner products of places with squared distances D² are  B = −½ J D² Jᵀ,  J = I − 1wᵀ. With
S = diag(√w) the eigenvectors U of SBS give the places S⁻¹UΛ^½, the best ones in p dimensions by Σ wᵢwⱼ(bᵢⱼ − xᵢxⱼ)².
Dissimilarities that are no Euclidean distances have eigenvalues below 0. A further row with squared dissimilarities δ²
to the others is placed at  ½(m − δ²)SUΛ^−½  with m their weighted means: a row among them where it is already.

References: Torgerson (1952), Psychometrika 17:401; Gower (1966), Biometrika 53:325; Gower (1968), Biometrika 55:582.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.principal_directions import signed
from app.ml.numerics.linear_algebra.solve import EPS, each_row
from app.ml.numerics.row_blocks import blocks

COMPLETE = 1500
"""Rows up to which all eigenvalues are found; of more, the largest ones and the lowest."""
MOST_LOWEST = 5
"""Lowest eigenvalues looked for where not all are."""
LOW_RANK = 1e-13
"""Rest of a matrix outside its supposed range, relative to its largest number, that counts as rounding."""


class ClassicalScaling(NamedTuple):
    eigenvalues: Vector
    """(m,) of SBS, descending: all n, or the largest ones and the lowest."""
    total: float
    """Sum of all eigenvalues."""
    squares: float
    """Sum of the squares of all."""
    means: Vector
    """(n,) weighted means of the squared dissimilarities."""
    factor: Matrix
    """(n, p) SUΛ^−½, for eigenvalues above 0; p may be less than was wanted, and is 1 with zeros if there is none."""

    def places(self, distances: Matrix) -> Matrix:
        """(b, p) of rows with dissimilarities (b, n), each by itself."""
        return each_row((self.means - np.square(distances)) / 2, self.factor)


def classical_scaling(distances: Matrix, weights: Vector, components: int) -> ClassicalScaling:
    """given: (n, n) dissimilarities, all known, whose squares are finite. weights: (n,), above 0."""
    root, share = np.sqrt(weights / weights.max()), weights / weights.sum()
    inner = np.square(distances)
    means = inner @ share
    inner -= means
    inner -= (means - share @ means)[:, None]
    inner *= -0.5 * root
    inner *= root[:, None]
    inner += inner.T
    inner /= 2
    total, squares = float(np.trace(inner)), float(np.einsum("ij,ij->", inner, inner))
    values, vectors = _spectrum(inner, components)
    significant = values[:components] > len(distances) * EPS * np.abs(values).max()
    if not significant.any():
        return ClassicalScaling(values, total, squares, means, np.zeros((len(distances), 1)))
    top = values[:components][significant]
    factor = root[:, None] * vectors[:, :components][:, significant] / np.sqrt(top)
    unit = float(weights.max())
    scaling = ClassicalScaling(values * unit, total * unit, squares * unit**2, means, factor)
    return scaling._replace(factor=factor * signs(scaling.places(distances)))


def signs(places: Matrix) -> Vector:
    """(p,) factors by which the place farthest along each axis of places (n, p) is on its positive side."""
    along = np.ascontiguousarray(places.T)
    return np.where(np.vecdot(along, signed(along)) < 0, -1.0, 1.0)


def _spectrum(inner: Matrix, components: int) -> tuple[Vector, Matrix]:
    """Eigenvalues, descending, and eigenvectors (n, p or more) of the first of them."""
    n, krylov = len(inner), max(2 * components + 1, 20)
    if n <= COMPLETE or krylov + MOST_LOWEST >= n // 4:
        return _complete(inner)
    basis = _range(inner, krylov + MOST_LOWEST)
    return _largest(inner, components) if basis is None else _within(inner, basis, components)


def _complete(inner: Matrix) -> tuple[Vector, Matrix]:
    values, vectors = scipy.linalg.eigh(inner, check_finite=False)
    return values[::-1], vectors[:, ::-1]


def _range(inner: Matrix, columns: int) -> Matrix | None:
    """(n, columns) orthonormal basis of the range of a matrix of a low rank; None: its rank is higher."""
    drawn = np.random.default_rng(0).normal(size=(len(inner), columns))
    basis, _ = np.linalg.qr(inner @ drawn)
    inside, largest = basis.T @ inner, LOW_RANK * float(np.abs(inner).max())
    near = all(np.abs(inner[rows] - basis[rows] @ inside).max() <= largest for rows in blocks(len(inner), len(inner)))
    return basis if near else None


def _within(inner: Matrix, basis: Matrix, components: int) -> tuple[Vector, Matrix]:
    """The largest eigenvalues and the lowest, of a matrix of a low rank: those within its range, and zeros."""
    values, vectors = scipy.linalg.eigh(basis.T @ inner @ basis)
    lowest = np.sort(np.append(values, np.zeros(MOST_LOWEST)))[:MOST_LOWEST][::-1]
    return np.concatenate([values[::-1][:components], lowest]), basis @ vectors[:, ::-1]


def _largest(inner: Matrix, components: int) -> tuple[Vector, Matrix]:
    """The largest eigenvalues and the lowest, by a Lanczos iteration; all of them where it does not end."""
    begin = np.random.default_rng(0).normal(size=len(inner))
    solve = scipy.sparse.linalg.eigsh
    try:
        lowest = solve(inner, MOST_LOWEST, which="SA", v0=begin, return_eigenvectors=False, tol=1e-6)
        values, vectors = solve(inner, components, which="LA", v0=begin)
    except scipy.sparse.linalg.ArpackError:
        return _complete(inner)
    order = np.argsort(values)[::-1]
    return np.concatenate([values[order], np.sort(lowest)[::-1]]), vectors[:, order]

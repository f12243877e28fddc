"""Lloyd's algorithm in the space of a kernel: rows go to the nearest mean, and means follow, without coordinates.

The mean of a cluster C of mass M is μ = Σ wⱼφ(xⱼ)/M over its rows, hence

    ‖φ(x) − μ‖² = k(x, x) − 2 s(x) + ‖μ‖²,   s(x) = Σ wⱼ k(x, xⱼ)/M,   ‖μ‖² = Σ wᵢ s(xᵢ)/M.

Values of the kernel are made block by block and are not kept. The sums Σ wⱼk(x, xⱼ) of the clusters are, and a step
changes them by the rows that change clusters: few, after the first steps. All starts share the values.

References: Schölkopf, Smola & Müller (1998), Neural Comput. 10:1299; Dhillon, Guan & Kulis (2004), KDD: 551.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.lloyd import fill_empty
from app.ml.numerics.clustering.seeding import draw
from app.ml.numerics.kernel_functions.kernel_function import KernelFunction

BLOCK = 2**20
"""Values of the kernel that are made at a time."""


Tensor: TypeAlias = NDArray[np.float64]
"""Shape (s, k, n)."""


class Problem(NamedTuple):
    kernel: KernelFunction
    x: Matrix
    """(n, d) different rows."""
    weights: Vector
    """(n,) above 0."""


class Descent(NamedTuple):
    labels: Labels
    """(n,) from 0, without holes; -1 before the first step."""
    inertia: list[float]
    """Weighted sum of the squared distances of the rows from their means, from the start on; never rises."""
    squares: Vector
    """(k,) squared lengths of the means."""
    following: Labels
    """(n,) labels after the next step."""
    converged: bool = False


def drawn_labels(problem: Problem, k: int, rng: np.random.Generator) -> Labels:
    """A random partition into at most k clusters, none empty."""
    drawn = rng.integers(0, min(k, len(problem.x)), len(problem.x))
    labels: Labels = np.unique(drawn, return_inverse=True)[1]
    return labels


def spread_labels(problem: Problem, k: int, rng: np.random.Generator, candidates: int) -> Labels:
    """The nearest of at most k rows, drawn by k-means++, the best of some candidates each."""
    diagonal = problem.kernel.diagonal(problem.x)
    drawn, labels = draw(problem.weights, rng, 1), np.zeros(len(diagonal), np.intp)
    squares = _squares(problem, diagonal, drawn)[:, 0]
    for label in range(1, k):
        if not squares.any():
            break
        drawn = draw(problem.weights * squares, rng, candidates)
        squares_to = _squares(problem, diagonal, drawn)
        left = np.minimum(squares[:, None], squares_to)
        best = int((problem.weights @ left).argmin())
        labels[squares_to[:, best] < squares] = label
        squares = np.ascontiguousarray(left[:, best])
    return labels


def _squares(problem: Problem, diagonal: Vector, rows: Labels) -> Matrix:
    """(n, c) squared distances of all rows to some of them."""
    squares = problem.kernel.matrix(problem.x, problem.x[rows])
    squares *= -2
    squares += diagonal[:, None]
    squares += diagonal[rows]
    squares[rows, np.arange(len(rows))] = 0.0
    return np.maximum(squares, 0.0)


def descend(problem: Problem, starts: Sequence[Labels], max_iter: int) -> list[Descent]:
    """From each start until no row changes clusters, or no change lowers the inertia, or `max_iter` moves of the means.

    A kernel that is not positive semidefinite has no such space: the inertia may then rise, and the descent ends before
    it does. A cluster that loses all its rows takes over the row that is farthest from its own mean.
    """
    diagonal, k = problem.kernel.diagonal(problem.x), 1 + max(int(labels.max()) for labels in starts)
    sums = np.zeros((len(starts), k, len(diagonal)))
    descents = [Descent(np.full_like(labels, -1), [], np.zeros(0), labels) for labels in starts]
    for _ in range(max_iter + 1):
        if all(descent.converged for descent in descents):
            break
        _follow(problem, descents, sums)
        descents = [
            descent if descent.converged else _followed(problem, diagonal, descent, part)
            for descent, part in zip(descents, sums, strict=True)
        ]
    return descents


def _follow(problem: Problem, descents: Sequence[Descent], sums: Tensor) -> None:
    """Change the sums (s, k, n) of each descent by the rows that its next step moves."""
    count, k, n = sums.shape
    moves = np.array([descent.labels != descent.following for descent in descents]) & ~np.array(
        [[descent.converged] for descent in descents]
    )
    moved = np.flatnonzero(moves.any(axis=0))
    changes = scipy.sparse.csr_array((count * k, moved.size))
    for labels, sign in (
        ([descent.labels for descent in descents], -1),
        ([descent.following for descent in descents], 1),
    ):
        run, place = np.nonzero(moves[:, moved] & (np.array(labels)[:, moved] >= 0))
        rows = moved[place]
        columns = (run * k + np.array(labels)[run, rows], place)
        changes += scipy.sparse.csr_array((sign * problem.weights[rows], columns), changes.shape)
    _add_products(problem.kernel, changes, problem.x[moved], problem.x, sums.reshape(count * k, n))


def _add_products(
    kernel: KernelFunction, factors: "scipy.sparse.csr_array", rows: Matrix, x: Matrix, sums: Matrix
) -> None:
    """Add the products of factors (s, m) and the kernel of rows (m, d) and x (n, d) to the sums (s, n)."""
    step = max(1, BLOCK // max(1, len(rows)))
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        sums[:, block] += factors @ kernel.matrix(rows, x[block])


def mean_products(problem: Problem, labels: Labels, x: Matrix) -> Matrix:
    """(k, m) inner products of the mean of each cluster, by labels (n,), with further rows (m, d)."""
    masses, places = np.bincount(labels, problem.weights), np.arange(len(labels))
    shares = scipy.sparse.csr_array((problem.weights / masses[labels], (labels, places)), (len(masses), len(labels)))
    products = np.zeros((len(masses), len(x)))
    _add_products(problem.kernel, shares, problem.x, x, products)
    return products


def _followed(problem: Problem, diagonal: Vector, last: Descent, sums: Matrix) -> Descent:
    """After one step, with the sums (k, n) of its labels; the last one where the inertia has not fallen."""
    labels, rows, weights = last.following, np.arange(len(diagonal)), problem.weights
    masses = np.bincount(labels, weights)
    distances = sums[: len(masses)] / masses[:, None]
    squares = np.bincount(labels, weights * distances[labels, rows]) / masses
    distances *= -2
    distances += squares[:, None]
    inertia = float(weights @ (diagonal + distances[labels, rows]))
    if last.inertia and inertia >= last.inertia[-1]:
        return last._replace(converged=True)
    nearest = distances.argmin(axis=0)
    nearest = np.where(distances[nearest, rows] < distances[labels, rows], nearest, labels)
    following, _ = fill_empty(nearest, weights * (diagonal + distances[nearest, rows]), len(masses))
    return Descent(labels, [*last.inertia, inertia], squares, following, bool((following == labels).all()))

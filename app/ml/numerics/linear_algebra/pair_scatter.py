"""Scatter matrices of pairs of rows, Σ dᵢⱼ(xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ over pairs i < j, in which each pair has its weight d.

They are XᵀLX with the Laplacian L of the weights: −dᵢⱼ off the diagonal, rows that add up to zero. L itself, n × n, is
never there as a whole.

Reference: Koren & Carmel (2004), IEEE Trans. Vis. Comput. Graph. 10:459.
"""

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.relations import Edges
from app.ml.numerics.linear_algebra.covariance import covariance
from app.ml.numerics.linear_algebra.solve import EPS

PAIRS = 2**18
"""Pairs worked on at a time."""


def of_all_pairs(x: Matrix, weights: Vector) -> Matrix:
    """(d, d) of rows x (n, d), the weight of a pair being the product of those of its rows (n,)."""
    return np.asarray(covariance(x, weights).matrix * weights.sum() ** 2, np.float64)


def by_inverse_distance(x: Matrix, weights: Vector) -> Matrix:
    """`of_all_pairs` with each pair over its distance; equal rows, and those equal but for rounding, do not count.

    x: (n, d) about its means. By blocks of rows, in O(n²d).
    """
    n, d = x.shape
    squares, scatter, step = (x * x).sum(axis=1), np.zeros((d, d)), max(1, PAIRS // n)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        both = squares[rows, None] + squares
        squared_distances = both - 2 * (x[rows] @ x.T)
        far = squared_distances > 64 * EPS * both
        pull = np.where(far, weights / np.sqrt(np.where(far, squared_distances, 1.0)), 0.0) * weights[rows, None]
        scatter += x[rows].T @ (pull.sum(axis=1)[:, None] * x[rows] - pull @ x)
    return (scatter + scatter.T) / 2


def of_edges(x: Matrix, edges: Edges, values: Vector) -> Matrix:
    """(d, d) of the pairs of some edges, with weights values (m,) of zero or more."""
    d = x.shape[1]
    scatter, step = np.zeros((d, d)), max(1, PAIRS // max(1, d))
    for start in range(0, values.size, step):
        some = slice(start, start + step)
        gaps = (x[edges.first[some]] - x[edges.second[some]]) * np.sqrt(values[some])[:, None]
        scatter += gaps.T @ gaps
    return scatter

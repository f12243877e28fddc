"""Harmonic functions on a graph: values given at some nodes, and at every other the weighted mean of its neighbours'.

On the other nodes U they solve (D − W)_UU f_U = W_UL f_L, and make Σ wᵢⱼ(fᵢ − fⱼ)² least. With indicators of classes
as the given values, fᵢ is the probability that a random walk from i, which crosses edges in proportion to their
weights, reaches a node of that class first; so values lie between the given ones, and add up to 1 over the classes.
A walk from a component without a given value never ends: its nodes have no value.
A dense or small system, or one whose graph takes many steps to cross, is factorised; the others are solved by
conjugate gradients up to a residual of 1e-12 of the right side.

References: Zhu, Ghahramani & Lafferty (2003), ICML: 912; Doyle & Snell (1984), Random Walks and Electric Networks.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.graphs.laplacian import DENSE, deep
from app.ml.numerics.graphs.similarity_graph import Graph, Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RESIDUAL, MOST_STEPS = 1e-12, 20_000
LOST = 1e-6
"""A node whose probabilities miss 1 by more is joined to given values by edges that rounding hides."""
DAMPING = 1e-13
"""Share of the diagonal that is added to a matrix that is singular but for rounding."""


class Harmonic(NamedTuple):
    values: Matrix
    """(n, k) probabilities of the classes; zeros where there are none."""
    determined: NDArray[np.bool_]
    """(n,) nodes with values."""
    converged: bool
    energy: float
    """Σ wᵢⱼ‖fᵢ − fⱼ‖² over edges, in the unit of the graph's weights."""


class _Solved(NamedTuple):
    values: Matrix
    converged: bool


def harmonic(graph: Graph, label_values: Matrix, labelled: NDArray[np.bool_]) -> Harmonic:
    """given: (n, k) rows that add up to 1 where `labelled` (n,) holds; the others do not count."""
    values = np.where(labelled[:, None], label_values, 0.0)
    reached = _reached(graph.weights, labelled)
    free = np.flatnonzero(reached & ~labelled)
    converged = True
    if free.size:
        solved = _free_values(graph, values, free)
        values[free], converged = solved.values, solved.converged
    determined = reached & (np.abs(values.sum(axis=1) - 1) <= LOST)
    values = np.where(determined[:, None], np.maximum(values, 0.0), 0.0)
    values /= np.where(determined, values.sum(axis=1), 1.0)[:, None]
    energy = float((values * (graph.degrees[:, None] * values - graph.weights @ values)).sum())
    return Harmonic(values, determined, converged, max(energy, 0.0))


def _reached(weights: Weights, labelled: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n,) nodes of components that have a labelled node."""
    _, component = scipy.sparse.csgraph.connected_components(weights, directed=False)
    return np.asarray(np.bincount(component, labelled)[component] > 0)


def _free_values(graph: Graph, values: Matrix, free: Labels) -> _Solved:
    """(u, k) of these nodes, for a matrix whose diagonal is 1."""
    roots = np.sqrt(graph.degrees[free])
    right = (graph.weights[free] @ values) / roots[:, None]
    within = graph.weights[np.ix_(free, free)]
    if isinstance(within, np.ndarray) or free.size <= DENSE:
        full = within if isinstance(within, np.ndarray) else within.toarray()
        solved = _Solved(_dense(np.eye(free.size) - full / roots / roots[:, None], right), converged=True)
    else:
        scale = scipy.sparse.diags_array(1 / roots)
        matrix = (scipy.sparse.eye_array(free.size) - scale @ within @ scale).tocsc()
        solved = _factorised(matrix, right) if deep(within) else _iterated(matrix, right)
    return solved._replace(values=np.nan_to_num(solved.values / roots[:, None], nan=0.0, posinf=0.0, neginf=0.0))


def _dense(matrix: Matrix, right: Matrix) -> Matrix:
    try:
        factors = scipy.linalg.cho_factor(matrix, lower=True)
    except scipy.linalg.LinAlgError:
        factors = scipy.linalg.cho_factor(matrix + len(matrix) * DAMPING * np.eye(len(matrix)), lower=True)
    return np.asarray(scipy.linalg.cho_solve(factors, right))


def _factorised(matrix: "csr_array", right: Matrix) -> _Solved:
    damped = matrix + DAMPING * scipy.sparse.eye_array(matrix.shape[0])
    factors = scipy.sparse.linalg.splu(
        damped.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    return _Solved(factors.solve(right), converged=True)


def _iterated(matrix: "csr_array", right: Matrix) -> _Solved:
    values, converged = np.zeros_like(right), True
    for column in np.flatnonzero(right.any(axis=0)):
        values[:, column], left = scipy.sparse.linalg.cg(matrix, right[:, column], rtol=RESIDUAL, maxiter=MOST_STEPS)
        converged &= left == 0
    return _Solved(values, converged)


def mean_shares(harmonic_values: Harmonic, masses: Vector, rows: NDArray[np.bool_]) -> Vector:
    """(k,) mean probabilities of the classes over these rows (n,) that have any, by their masses."""
    weights = masses * (rows & harmonic_values.determined)
    return np.asarray(weights @ harmonic_values.values / (weights.sum() or 1.0), np.float64)

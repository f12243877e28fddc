"""Smallest eigenvalues of the Laplacian of a graph, with their eigenvectors.

The unnormalised Laplacian L = D − W is taken with the masses M of the nodes, as M^-½ L M^-½; the normalised one is
D^-½ L D^-½. Both are symmetric and positive semidefinite, and each component of the graph adds one eigenvalue 0, whose
eigenvector is known: components are therefore solved one by one, and the eigenvalue 0 is exact.
A component that takes many steps to cross has small gaps between its eigenvalues and factorises well: it is solved by
inverse iteration with a sparse factorisation. Others have large gaps, and Lanczos iterations alone find them.

References: von Luxburg (2007), Stat. Comput. 17:395, section 3; Lehoucq, Sorensen & Yang (1998), ARPACK Users' Guide;
Amestoy, Davis & Duff (1996), SIAM J. Matrix Anal. Appl. 17:886.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.graphs.similarity_graph import Graph, Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE = 300
"""Nodes of a component that is solved as a dense matrix."""
SHIFT = 1e-6
"""Added to the diagonal before a factorisation, relative to the largest eigenvalue that there may be."""
CROSSED = 8
"""A component is factorised where the square of its depth, times this, is above its number of nodes."""


class Spectrum(NamedTuple):
    values: Vector
    """(m,) ascending, in the unit of the graph's weights; the first `components` are 0."""
    vectors: Matrix
    """(n, m) orthonormal, of the symmetric matrix."""
    roots: Vector
    """(n,) square roots of masses or degrees, by which eigenvectors are divided to have one value on a component."""
    labels: Labels
    """(n,) component of each node, from 0."""

    @property
    def components(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def embedding(self) -> Matrix:
        """(n, m) eigenvectors as values of the nodes: constant on a component where the eigenvalue is 0."""
        return self.vectors / self.roots[:, None]


def smallest(graph: Graph, count: int, *, normalised: bool) -> Spectrum:
    """The `count` smallest eigenvalues, or all of them; of equal ones, those of the largest components first."""
    _, labels = scipy.sparse.csgraph.connected_components(graph.weights, directed=False)
    roots = _roots(graph, normalised=normalised)
    nodes = _nodes(labels)
    order = sorted(range(len(nodes)), key=lambda component: -nodes[component].size)
    pairs = [(0.0, component, roots[nodes[component]]) for component in order[:count]]
    for component in order if len(order) < count else ():
        values, vectors = _positive(graph, roots, nodes[component], count - len(order), normalised=normalised)
        pairs.extend((value, component, vector) for value, vector in zip(values, vectors.T, strict=True))
    pairs.sort(key=lambda pair: pair[0])
    vectors = np.zeros((len(labels), min(count, len(pairs))))
    for place, (_, component, vector) in enumerate(pairs[:count]):
        vectors[nodes[component], place] = vector / np.linalg.norm(vector)
    return Spectrum(np.array([pair[0] for pair in pairs[:count]]), vectors, roots, labels.astype(np.intp))


def _nodes(labels: Labels) -> list[Labels]:
    """The nodes of each component, ascending."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def _roots(graph: Graph, *, normalised: bool) -> Vector:
    """A node without edges has the degree of its mass, as nothing depends on it."""
    if not normalised:
        return np.sqrt(graph.masses)
    degrees = graph.degrees
    return np.sqrt(np.where(degrees > 0, degrees, graph.masses))


def _positive(graph: Graph, roots: Vector, nodes: Labels, count: int, *, normalised: bool) -> tuple[Vector, Matrix]:
    """Up to `count` of the smallest eigenvalues of a component after its 0, and their eigenvectors as columns."""
    count = min(count, nodes.size - 1)
    if count < 1:
        return np.zeros(0), np.zeros((nodes.size, 0))
    weights = graph.weights if nodes.size == roots.size else graph.weights[np.ix_(nodes, nodes)]
    diagonal = np.asarray(weights.sum(axis=1)) / roots[nodes] ** 2
    scaled = _scaled(weights, 1 / roots[nodes])
    largest = 2.0 if normalised else 2 * float(diagonal.max())
    values, vectors = _solved(scaled, diagonal, count + 1, largest)
    return np.maximum(values[1:], 0.0), vectors[:, 1:]


def _scaled(weights: Weights, factors: Vector) -> Weights:
    if isinstance(weights, np.ndarray):
        return weights * factors * factors[:, None]
    rows = np.repeat(np.arange(factors.size), np.diff(weights.indptr))
    values = weights.data * factors[rows] * factors[weights.indices]
    return scipy.sparse.csr_array((values, weights.indices, weights.indptr), shape=weights.shape)


def _solved(scaled: Weights, diagonal: Vector, count: int, largest: float) -> tuple[Vector, Matrix]:
    """The smallest eigenvalues of diag(diagonal) − scaled, ascending, and their eigenvectors."""
    n = diagonal.size
    if n <= DENSE or count > n // 3:
        full = np.diag(diagonal) - (scaled if isinstance(scaled, np.ndarray) else scaled.toarray())
        return tuple(scipy.linalg.eigh(full, subset_by_index=(0, count - 1)))
    if not isinstance(scaled, np.ndarray) and deep(scaled):
        return _by_factors(scaled, diagonal, count, largest)
    return _by_products(scaled, diagonal, count, largest)


def deep(weights: "csr_array") -> bool:
    """True if crossing the largest component takes many steps, as on a line or a surface."""
    _, labels = scipy.sparse.csgraph.connected_components(weights, directed=False)
    sizes = np.bincount(labels)
    begin = int(np.argmax(labels == sizes.argmax()))
    steps = scipy.sparse.csgraph.shortest_path(weights, unweighted=True, indices=begin)
    return bool(CROSSED * steps[np.isfinite(steps)].max() ** 2 > sizes.max())


def _by_factors(scaled: "csr_array", diagonal: Vector, count: int, largest: float) -> tuple[Vector, Matrix]:
    shift = SHIFT * largest
    matrix = scipy.sparse.diags_array(diagonal + shift) - scaled
    factors = scipy.sparse.linalg.splu(
        matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    inverse = scipy.sparse.linalg.LinearOperator(matrix.shape, factors.solve, dtype=np.float64)
    values, vectors = scipy.sparse.linalg.eigsh(inverse, count, which="LA", v0=_start(diagonal.size))
    order = np.argsort(-values)
    return 1 / values[order] - shift, vectors[:, order]


def _by_products(scaled: Weights, diagonal: Vector, count: int, largest: float) -> tuple[Vector, Matrix]:
    complement = largest - diagonal

    def product(vector: Vector) -> Vector:
        return np.asarray(complement * vector.ravel() + scaled @ vector.ravel())

    operator = scipy.sparse.linalg.LinearOperator(scaled.shape, product, dtype=np.float64)
    basis_size = max(2 * count + 1, 40)
    values, vectors = scipy.sparse.linalg.eigsh(
        operator, count, which="LA", v0=_start(diagonal.size), ncv=min(basis_size, diagonal.size - 1), tol=1e-12
    )
    order = np.argsort(-values)
    return largest - values[order], vectors[:, order]


def _start(n: int) -> Vector:
    """The first vector of the iterations, always the same."""
    return np.random.Generator(np.random.PCG64(0)).uniform(0.5, 1.5, n)

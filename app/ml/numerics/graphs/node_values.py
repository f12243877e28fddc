"""Values of the nodes of a graph of rows, so that neither the order of the rows nor copies of them matter."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.numerics.clustering.seeding import canonical_order, numbers_of
from app.ml.numerics.graphs.laplacian import Spectrum
from app.ml.numerics.graphs.similarity_graph import has_graph
from app.ml.numerics.linear_algebra.solve import near_one


def numbered(data: Data) -> Data:
    """The rows with their numbers; where their columns make the graph, in an order that depends on values only."""
    data = replace(data, numbers=numbers_of(data))
    if has_graph(data):
        return data
    return data.take(canonical_order(data.x * near_one(float(np.abs(data.x).max(initial=0.0)))))


def equal_before(x: Matrix) -> Labels:
    """(n,) group of equal rows of each row, where equal rows are neighbours; groups count from 0."""
    new = (x[1:] != x[:-1]).any(axis=1)
    return np.concatenate([[0], np.cumsum(new)]).astype(np.intp)


def same_for_equal(data: Data, values: Matrix, masses: Vector, counting: NDArray[np.bool_] | None = None) -> Matrix:
    """Values (n, c) of the rows of `numbered`, each the mean over the rows that equal it in all columns.

    counting: (n,) rows that alone make the mean of theirs, where there are any; None: all.
    """
    if has_graph(data):
        return values
    groups = equal_before(data.x)
    if counting is not None:
        masses = np.where(counting | (np.bincount(groups, counting)[groups] == 0), masses, 0.0)
    total = np.bincount(groups, masses)
    means = np.stack([np.bincount(groups, masses * column) / total for column in values.T], axis=1)
    single = np.bincount(groups)[groups] == 1
    return np.where(single[:, None], values, means[groups])


def partition_coordinates(spectrum: Spectrum, k: int) -> Matrix:
    """(n, k) coordinates of the nodes by the first k eigenvectors.

    Of more components than k any k eigenvectors of the eigenvalue 0 would do: those of the k - 1 largest components,
    and one of all others together.
    """
    coordinates = spectrum.embedding[:, :k]
    if spectrum.components <= k:
        return coordinates
    largest = np.argsort(-np.bincount(spectrum.labels), kind="stable")[: k - 1]
    remaining = np.where(np.isin(spectrum.labels, largest), 0.0, spectrum.roots)
    coordinates[:, k - 1] = remaining / spectrum.roots / np.linalg.norm(remaining)
    return coordinates


def by_first_row(labels: Labels) -> Labels:
    """The clusters numbered from 0 in the order of their first rows."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[codes], np.intp)


class Drawn(NamedTuple):
    values: Vector
    """(q,) eigenvalues after that of the constant vector."""
    coordinates: Matrix
    """(n, q)"""


def drawn(spectrum: Spectrum, count: int) -> Drawn:
    """Up to `count` coordinates of the nodes by eigenvectors, all orthogonal to the constant one."""
    zeros = min(spectrum.components, spectrum.values.size)
    constant = spectrum.roots / np.linalg.norm(spectrum.roots)
    vectors = spectrum.vectors.copy()
    parts = vectors[:, :zeros] - np.outer(constant, constant @ vectors[:, :zeros])
    free = min(count, zeros if spectrum.components > zeros else zeros - 1)
    left = np.linalg.svd(parts, full_matrices=False)[0][:, :free]
    chosen = np.column_stack([left, vectors[:, zeros:]])[:, :count]
    values = np.concatenate([np.zeros(free), spectrum.values[zeros:]])[:count]
    return Drawn(values, chosen / spectrum.roots[:, None])

"""Cuts of a graph: the weight of the edges between the clusters of a partition of its nodes.

With W(C) the weight of the edges that leave a cluster, the cut is Σ W(C), which counts every edge between two clusters
twice; RatioCut is Σ W(C) / |C|, with the mass of the nodes as |C|, and the normalised cut Σ W(C) / vol(C), with the sum
of their degrees. RatioCut is the trace of HᵀLH for the orthonormal columns of H that indicate the clusters.

References: von Luxburg (2007), Stat. Comput. 17:395, section 5; Shalev-Shwartz & Ben-David (2014), Understanding
Machine Learning, section 22.3.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.graphs.graph_blocks import EdgeBlocks
from app.ml.numerics.graphs.similarity_graph import Graph
from app.ml.numerics.row_blocks import blocks

MAX_FLOAT = np.finfo(float).max


class Cuts(NamedTuple):
    leaving: Vector
    """(k,) weight of the edges that leave each cluster."""
    masses: Vector
    """(k,) of its nodes."""
    volumes: Vector
    """(k,) sum of the degrees of its nodes."""

    @property
    def cut(self) -> float:
        return total(self.leaving)

    @property
    def ratio_cut(self) -> float:
        return total(self.leaving / np.where(self.masses > 0, self.masses, 1.0))

    @property
    def normalised_cut(self) -> float:
        return total(self.leaving / np.where(self.volumes > 0, self.volumes, 1.0))


def total(values: Vector) -> float:
    """Their sum, at most the largest number."""
    with np.errstate(over="ignore"):
        return float(min(values.sum(), MAX_FLOAT))


def cuts(graph: Graph, labels: Labels) -> Cuts:
    """labels: (n,) the cluster of each node, from 0."""
    k = int(labels.max()) + 1
    sums = (_by_cluster(labels, values, k) for values in (_leaving(graph, labels), graph.masses, graph.degrees))
    leaving, masses, volumes = sums
    return Cuts(graph.in_unit(leaving), masses, graph.in_unit(volumes))


def cuts_in_blocks(blocks: EdgeBlocks, masses: Vector, labels: Labels) -> tuple[Cuts, float]:
    """The same of a graph whose edges come in blocks, with the trace. masses: (n,) of the nodes."""
    k, (leaving, degrees, within) = int(labels.max()) + 1, np.empty((3, labels.size))
    for some, weights in blocks:
        is_cut = labels[some, None] != labels
        degrees[some] = weights.sum(axis=1)
        leaving[some], within[some] = (weights * is_cut).sum(axis=1), (weights * ~is_cut).sum(axis=1)
    sums = [_by_cluster(labels, values, k) for values in (leaving, masses, degrees, within)]
    return Cuts(*sums[:3]), total(_traces(*sums[1:]))


def _by_cluster(labels: Labels, values: Vector, k: int) -> Vector:
    return np.asarray(np.bincount(labels, values, k), np.float64)


def _leaving(graph: Graph, labels: Labels) -> Vector:
    """(n,) weight of the edges of each node to nodes of other clusters."""
    weights = graph.weights
    if isinstance(weights, np.ndarray):
        parts = [
            (weights[some] * (labels[some, None] != labels)).sum(axis=1) for some in blocks(labels.size, labels.size)
        ]
        return np.concatenate(parts)
    rows = np.repeat(np.arange(labels.size), np.diff(weights.indptr))
    is_cut = labels[rows] != labels[weights.indices]
    return _by_cluster(rows[is_cut], weights.data[is_cut], labels.size)


def trace(graph: Graph, labels: Labels) -> float:
    """Trace of HᵀLH, with the column √mᵢ / √|C| of H for each cluster C and L the Laplacian with masses: RatioCut."""
    k, n = int(labels.max()) + 1, labels.size
    indicator = scipy.sparse.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    within_row = np.asarray((graph.weights @ indicator)[np.arange(n), labels])
    within, volumes, masses = (_by_cluster(labels, values, k) for values in (within_row, graph.degrees, graph.masses))
    return total(graph.in_unit(_traces(masses, volumes, within)))


def _traces(masses: Vector, volumes: Vector, within: Vector) -> Vector:
    return np.asarray((volumes - within) / np.where(masses > 0, masses, 1.0))

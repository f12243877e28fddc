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
from app.ml.numerics.graphs.similarity_graph import Graph
from app.ml.numerics.row_blocks import blocks

LARGEST = np.finfo(float).max


class Cuts(NamedTuple):
    leaving: Vector
    """(k,) weight of the edges that leave each cluster."""
    masses: Vector
    """(k,) of its nodes."""
    volumes: Vector
    """(k,) sum of the degrees of its nodes."""

    @property
    def cut(self) -> float:
        return _sum(self.leaving)

    @property
    def ratio_cut(self) -> float:
        return _sum(self.leaving / np.where(self.masses > 0, self.masses, 1.0))

    @property
    def normalised_cut(self) -> float:
        return _sum(self.leaving / np.where(self.volumes > 0, self.volumes, 1.0))


def _sum(values: Vector) -> float:
    """At most the largest number."""
    with np.errstate(over="ignore"):
        return float(min(values.sum(), LARGEST))


def cuts(graph: Graph, labels: Labels) -> Cuts:
    """labels: (n,) the cluster of each node, from 0."""
    k = int(labels.max()) + 1
    leaving, degrees = np.bincount(labels, _leaving(graph, labels), k), np.bincount(labels, graph.degrees, k)
    with np.errstate(over="ignore"):
        leaving, volumes = (np.minimum(weights * graph.unit, LARGEST) for weights in (leaving, degrees))
    return Cuts(leaving, np.asarray(np.bincount(labels, graph.masses, k), np.float64), volumes)


def _leaving(graph: Graph, labels: Labels) -> Vector:
    """(n,) weight of the edges of each node to nodes of other clusters."""
    weights = graph.weights
    if isinstance(weights, np.ndarray):
        parts = [
            (weights[some] * (labels[some, None] != labels)).sum(axis=1) for some in blocks(labels.size, labels.size)
        ]
        return np.concatenate(parts)
    rows = np.repeat(np.arange(labels.size), np.diff(weights.indptr))
    apart = labels[rows] != labels[weights.indices]
    return np.asarray(np.bincount(rows[apart], weights.data[apart], labels.size), np.float64)


def trace(graph: Graph, labels: Labels) -> float:
    """Trace of HᵀLH, with the column √mᵢ / √|C| of H for each cluster C and L the Laplacian with masses: RatioCut."""
    k, n = int(labels.max()) + 1, labels.size
    indicator = scipy.sparse.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    within = np.bincount(labels, (graph.weights @ indicator)[np.arange(n), labels], k)
    volumes = np.bincount(labels, graph.degrees, k)
    masses = np.bincount(labels, graph.masses, k)
    with np.errstate(over="ignore"):
        return _sum((volumes - within) / np.where(masses > 0, masses, 1.0) * graph.unit)

"""A similarity graph as a part of a model: its edges, unless they are too many to store."""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.graphs.similarity_graph import Graph, of_edges

MOST_EDGES = 2**21
"""Edges that a model stores."""


class KeptGraph(NamedTuple):
    edges: int
    """Number of edges."""
    first: Labels
    """(m,) place of one node of each edge; (0,) where there are more than MOST_EDGES."""
    second: Labels
    """(m,) place of the other."""
    values: Vector
    """(m,) weights, in the unit."""
    unit: float
    masses: Vector
    """(n,)"""

    @property
    def complete(self) -> bool:
        return self.edges == self.first.size

    def graph(self) -> Graph:
        return Graph(of_edges(self.masses.size, self.first, self.second, self.values), self.unit, self.masses)


def keep(graph: Graph) -> KeptGraph:
    weights = graph.weights
    count = int(np.count_nonzero(weights) if isinstance(weights, np.ndarray) else weights.nnz) // 2
    if count > MOST_EDGES:
        nothing = np.zeros(0, np.intp)
        return KeptGraph(count, nothing, nothing, np.zeros(0), graph.unit, graph.masses)
    upper = scipy.sparse.triu(scipy.sparse.coo_array(weights), format="csr").tocoo()
    first, second = (places.astype(np.intp) for places in upper.coords)
    return KeptGraph(count, first, second, upper.data, graph.unit, graph.masses)

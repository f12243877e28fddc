"""A graph with the clusters of its nodes, as a query of cuts reads them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.graphs.graph_blocks import EdgeBlocks
from app.ml.numerics.graphs.graph_cuts import Cuts, cuts, cuts_in_blocks, trace
from app.ml.numerics.graphs.kept_graph import KeptGraph


class PartitionedGraph(NamedTuple):
    graph: KeptGraph
    labels: Labels
    """(n,) clusters of the nodes."""
    eigenvalues: Vector
    """(m,) smallest ones of the Laplacian, ascending."""
    numbers: Labels
    """(n,) numbers of the rows in the dataset, from 0."""
    items: NDArray[np.str_] | None
    """(n,) names of the rows; None: they have none."""
    made_again: Callable[[], EdgeBlocks] | None = None
    """Makes the edges in blocks; None: that would need a search, or edges that only the training had."""

    @property
    def known(self) -> bool:
        """True if there are edges, stored or made again."""
        return self.graph.complete or self.made_again is not None

    def cuts(self, labels: Labels) -> tuple[Cuts, float]:
        """Cuts of another partition, with the trace of HᵀLH. labels: (n,) from 0."""
        if self.graph.complete or self.made_again is None:
            graph = self.graph.graph()
            return cuts(graph, labels), trace(graph, labels)
        return cuts_in_blocks(self.made_again(), self.graph.masses, labels)

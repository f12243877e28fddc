"""A stored graph with the clusters of its nodes, as a query of cuts reads them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Vector
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

"""A graph that columns of rows make, again, some rows at a time: where its edges are too many to store."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.graphs.graph_rows import BLOCK, COLUMNS, GraphRows
from app.ml.numerics.graphs.similarity_graph import GraphParams, similarity
from app.ml.numerics.linear_algebra.solve import near_one

EdgeBlocks: TypeAlias = Iterator[tuple[slice, Matrix]]
"""Consecutive nodes, and the weights (b, n) of their edges to all, 0 where there is none."""
MOST_PAIRS = 2**26
"""Pairs of rows, each counted twice, whose edges are made while a client waits."""


def made_again(params: GraphParams, nodes: GraphRows) -> bool:
    """True if each edge depends on its two rows only, so that no neighbours are to be searched, and pairs are few."""
    return nodes.kind == COLUMNS and params.graph != "nearest_neighbors" and nodes.size**2 <= MOST_PAIRS


def edge_blocks(params: GraphParams, nodes: GraphRows) -> EdgeBlocks:
    """The edges of the fit but for rounding, of rows for which `made_again` is true."""
    unit = near_one(float(np.abs(nodes.rows).max(initial=0.0)))
    x, scale = nodes.rows * unit, float(nodes.scale[0]) * unit
    width = None if params.width is None else params.width * unit
    tree = scipy.spatial.cKDTree(x) if params.graph == "epsilon" else None
    step = max(1, BLOCK // nodes.size)
    for start in range(0, nodes.size, step):
        some = slice(start, min(start + step, nodes.size))
        if tree is None:
            weights = similarity(scipy.spatial.distance.cdist(x[some], x), scale if width is None else width)
        else:
            weights = _within(x[some], tree, scale if params.radius is None else params.radius * unit, width)
        weights *= nodes.masses * nodes.masses[some, None]
        weights[np.arange(len(weights)), np.arange(nodes.size)[some]] = 0.0
        yield some, weights


def _within(x: Matrix, tree: "scipy.spatial.cKDTree", radius: float, width: float | None) -> Matrix:
    """(b, n) by the tree that joins the rows of a fit, so that pairs just at the radius are joined as they were."""
    near = scipy.spatial.cKDTree(x).sparse_distance_matrix(tree, radius, output_type="ndarray")
    weights = np.zeros((len(x), tree.n))
    weights[near["i"], near["j"]] = similarity(near["v"], width)
    return weights

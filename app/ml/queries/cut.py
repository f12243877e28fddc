"""The dendrogram of an agglomerative clustering, cut into a number of clusters, at a height, or at its widest gap.

At most 100,000 training rows.
"""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from app.base.errors import BodyTooLarge, InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body, Wire
from app.ml.kinds.query import Query, Subject, declared
from app.ml.models.model_response import ModelResponse
from app.ml.numerics.clustering.linkage import heights_beside, labels, merges_below, widest_gap

if TYPE_CHECKING:
    from app.ml.contract.algorithm import Vector
    from app.ml.numerics.clustering.row_tree import RowTree

MOST_ROWS = 100_000
"""Training rows in one response."""


class CutRequest(Body):
    """The place at which the tree of merges is cut. With neither number it is the widest gap between two heights."""

    n_clusters: int | None = Field(
        None, ge=1, le=MOST_ROWS, description="Number of clusters, at most the training rows; null: by height or gap."
    )
    height: float | None = Field(
        None,
        ge=0,
        description="Height of the cut, a distance in prepared (scaled) columns: merges at this height or lower are "
        "made. Null: by number or gap.",
    )
    merges: bool = Field(False, description="True: also all merges of the tree.")


class Merge(Wire):
    """A node of the dendrogram. With n training rows, nodes 0 to n - 1 are rows, in the order of `rows`."""

    node: int = Field(description="Number of the node that the merge makes, from n.")
    left: int = Field(description="Number of one node that is joined.")
    right: int = Field(description="Number of the other node that is joined, the larger one.")
    height: float = Field(description="Distance of the two by the linkage, in prepared (scaled) columns.")
    size: int = Field(description="Training rows of the node.")


class Cut(ModelResponse):
    """Clusters of the training rows at one height of the tree."""

    n_clusters: int = Field(description="Number of clusters.")
    highest_merge_below: float | None = Field(description="Height of the last merge made; null: none is made.")
    lowest_merge_above: float | None = Field(description="Height of the first merge not made; null: all are made.")
    sizes: list[int] = Field(description="Training rows of each cluster.")
    rows: list[int] = Field(description="Numbers of the training rows in their dataset, from 0.")
    items: list[str] | None = Field(
        None, description="Names of these rows, by the column `item` of the training; null: it named none."
    )
    labels: list[int] = Field(
        description="Cluster of each of these rows, from 0, numbered in the order of their first rows."
    )
    merges: list[Merge] | None = Field(None, description="Merges, lowest first; null: they were not requested.")


def cut(subject: Subject, request: CutRequest) -> Cut:
    """Raises InvalidRequest for a number and a height, or more clusters than rows; BodyTooLarge for a large tree."""
    model = subject.model
    tree: RowTree = model.algorithm.queries["cut"](model.params, model.state)
    heights, n = tree.merges.heights, len(tree.numbers)
    if n > MOST_ROWS:
        raise BodyTooLarge(f"The tree has {n} rows; one response holds {MOST_ROWS}.")
    merges = _merges(request, heights)
    row_labels = labels(tree.merges.children, merges)
    below, above = heights_beside(heights, merges)
    return Cut(
        **subject.fields,
        n_clusters=n - merges,
        highest_merge_below=below,
        lowest_merge_above=above,
        sizes=np.bincount(row_labels).tolist(),
        rows=tree.numbers.tolist(),
        items=None if tree.items is None else tree.items.tolist(),
        labels=row_labels.tolist(),
        merges=_table(tree) if request.merges else None,
    )


def _merges(request: CutRequest, heights: "Vector") -> int:
    if request.n_clusters is not None and request.height is not None:
        raise InvalidRequest(faults=[Fault("/height", "Give a number of clusters or a height, not both.")])
    if request.height is not None:
        return merges_below(heights, request.height)
    if request.n_clusters is None:
        return widest_gap(heights)
    if request.n_clusters > len(heights) + 1:
        raise InvalidRequest(faults=[Fault("/n_clusters", f"The tree has {len(heights) + 1} rows.")])
    return len(heights) + 1 - request.n_clusters


def _table(tree: "RowTree") -> list[Merge]:
    children, heights, sizes = (column.tolist() for column in tree.merges)
    rows = enumerate(zip(children, heights, sizes, strict=True), len(tree.numbers))
    return [Merge(node=i, left=a, right=b, height=height, size=size) for i, ((a, b), height, size) in rows]


QUERY = Query(operation="cut_dendrogram", request=CutRequest, response=Cut, run=cut, offered=declared("cut"))

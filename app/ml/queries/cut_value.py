"""The cut, RatioCut and normalised cut of any partition of the training rows, in the graph of a spectral clustering.

The sum of the smallest eigenvalues is a bound that no partition into as many clusters is below. A graph of more than
2,097,152 edges is not stored with the model. Of at most 8,192 rows that are joined by their distance (`full`,
`epsilon`) its edges are made again, in blocks, by each query. Others have no such values: neighbours would have to be
searched again while the client waits, and given edges and squares are known to the training only.
"""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
from pydantic import Field

from app.base.errors import InvalidRequest, NotOffered
from app.base.faults import Fault, place
from app.base.suggestions import no_such
from app.base.wire import Body, Wire
from app.ml.kinds.query import Query, Subject, declared
from app.ml.models.model_response import ModelResponse
from app.ml.numerics.graphs.graph_blocks import MOST_PAIRS
from app.ml.numerics.graphs.graph_cuts import total
from app.ml.numerics.graphs.kept_graph import MOST_EDGES

if TYPE_CHECKING:
    from app.ml.contract.algorithm import Labels
    from app.ml.numerics.graphs.partitioned_graph import PartitionedGraph

MOST_ROWS = 1_000_000
"""Training rows in one request."""
Cluster: TypeAlias = Annotated[int, Field(ge=0, lt=2**31)]
NAMED = 10
"""Faults of one kind that an error lists."""


class CutValueRequest(Body):
    """A partition of the training rows. With neither field it is the clustering of the model."""

    labels: list[Cluster] | None = Field(
        None,
        max_length=MOST_ROWS,
        description="Cluster of each training row, in the order of their numbers in the dataset; any whole numbers "
        "from 0. Null: by items, or the clusters of the model.",
    )
    items: dict[str, Cluster] | None = Field(
        None,
        max_length=MOST_ROWS,
        description="Cluster of each training row by its name, for a model trained with `item` or on edges alone; any "
        "whole numbers from 0. Null: by labels, or the clusters of the model.",
    )


class CutCluster(Wire):
    """A cluster of the partition."""

    label: int = Field(description="Number of the cluster in the request, or in the model.")
    size: int = Field(description="Number of training rows.")
    mass: float = Field(description="Sum of the weights of these rows, beside a mean of 1 over all rows.")
    volume: float = Field(description="Sum of the degrees of these rows: the weights of all their edges.")
    cut: float = Field(description="Weight of the edges from these rows to rows of other clusters.")


class CutValue(ModelResponse):
    """Weights of the edges between the clusters of a partition."""

    n_clusters: int = Field(description="Number of clusters.")
    cut: float = Field(description="Sum of the cuts of the clusters, in which each edge between two counts twice.")
    ratio_cut: float = Field(description="Sum of the cut of each cluster over its mass.")
    normalised_cut: float = Field(description="Sum of the cut of each cluster over its volume.")
    trace: float = Field(description="Trace of HᵀLH for the partition, which is RatioCut but for rounding.")
    bound: float | None = Field(
        description="Sum of as many smallest eigenvalues as there are clusters, which no partition is below: in "
        "RatioCut with the unnormalised Laplacian, in the normalised cut with the normalised one. Null: the model has "
        "fewer eigenvalues."
    )
    clusters: list[CutCluster] = Field(description="Clusters, in the order of their numbers.")


def cut_value(subject: Subject, request: CutValueRequest) -> CutValue:
    """Raises InvalidRequest for a partition of other rows, NotOffered for a graph that is neither stored nor made
    again.
    """
    model = subject.model
    graph_view: PartitionedGraph = model.algorithm.queries["cut_value"](model.params, model.state)
    if not graph_view.known:
        raise NotOffered(
            f"The graph has {graph_view.graph.edges} edges; a model stores at most {MOST_EDGES}. Train with fewer "
            f"edges or neighbours, or let columns join at most {math.isqrt(MOST_PAIRS)} rows by their distance."
        )
    names, codes = np.unique(_labels(graph_view, request), return_inverse=True)
    values, traced = graph_view.cuts(codes)
    sizes = np.bincount(codes).tolist()
    parts = (part.tolist() for part in (values.masses, values.volumes, values.leaving))
    columns = zip(names.tolist(), sizes, *parts, strict=True)
    return CutValue(
        **subject.fields,
        n_clusters=len(names),
        cut=values.cut,
        ratio_cut=values.ratio_cut,
        normalised_cut=values.normalised_cut,
        trace=traced,
        bound=total(graph_view.eigenvalues[: len(names)]) if len(names) <= len(graph_view.eigenvalues) else None,
        clusters=[
            CutCluster(label=label, size=size, mass=mass, volume=volume, cut=cut)
            for label, size, mass, volume, cut in columns
        ],
    )


def _labels(graph_view: "PartitionedGraph", request: CutValueRequest) -> "Labels":
    """(n,) in the order of the nodes."""
    faults = [*_faults(graph_view, request)]
    if faults:
        raise InvalidRequest(faults=faults)
    if request.items is not None and graph_view.items is not None:
        return np.array([request.items[item] for item in graph_view.items.tolist()])
    if request.labels is None:
        return graph_view.labels
    labels = np.empty(len(graph_view.labels), np.intp)
    labels[np.argsort(graph_view.numbers, kind="stable")] = request.labels
    return labels


def _faults(graph_view: "PartitionedGraph", request: CutValueRequest) -> Iterator[Fault]:
    n = len(graph_view.labels)
    if request.labels is not None and request.items is not None:
        yield Fault("/items", "Give labels or items, not both.")
    if request.labels is not None and len(request.labels) != n:
        yield Fault("/labels", f"The model has {n} training rows, and these are {len(request.labels)} labels.")
    if request.items is not None:
        yield from _item_faults(graph_view, request.items)


def _item_faults(graph_view: "PartitionedGraph", sides: Mapping[str, int]) -> Iterator[Fault]:
    if graph_view.items is None:
        yield Fault("/items", "The training rows have no names: give labels.")
        return
    item_names = set(graph_view.items.tolist())
    for item in [item for item in sides if item not in item_names][:NAMED]:
        yield Fault(place("items", item), no_such("The model has no training row named", item, sorted(item_names)))
    missing = sorted(item_names - sides.keys())
    if missing:
        listed = ", ".join(map(repr, missing[:NAMED]))
        yield Fault("/items", f"{len(missing)} training rows have no cluster here: {listed}.", "missing")


QUERY = Query(
    operation="evaluate_cut",
    request=CutValueRequest,
    response=CutValue,
    run=cut_value,
    offered=declared("cut_value"),
)

"""The ellipsoids of the clusters of a clustering, or the components of a Gaussian mixture, in one to three columns.

A surface holds the points at one Mahalanobis distance from the mean, in the units of the table or in principal
coordinates. With `split` between 0 and 1 the ellipsoids are on the way from those of the parents, in a tree of
clusters, or from that of all rows, to those of the components, as an animation shows them.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.suggestions import no_such
from app.base.wire import Body, Wire
from app.ml.kinds.query import Query, Subject, declared
from app.ml.models.model import Model
from app.ml.models.model_response import ModelResponse
from app.ml.numerics.density.normal_ellipsoids import (
    Ellipsoids,
    of_components,
    of_groups,
    of_mixture,
    principal_axes,
    radius_of,
)

if TYPE_CHECKING:
    from app.ml.contract.algorithm import Labels, Vector
    from app.ml.numerics.density.normal_ellipsoids import Normals

MOST_COLUMNS = 3
MOST_PRINCIPAL = 2000
"""Columns that principal coordinates are made of."""


class EllipsoidsRequest(Body):
    """The columns, and the distance of the surface from the mean."""

    columns: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MOST_COLUMNS,
        description="Prepared columns of the model, by name: an input that is a number, or a category as `plan=pro`. "
        "Null: the first three, or as many as there are.",
    )
    principal: bool = Field(
        False,
        description="True: the first three principal coordinates of all rows, about their mean, instead of columns. "
        "They have the unit of the prepared (scaled) columns.",
    )
    parents: int | None = Field(
        None,
        ge=1,
        description="Number of clusters, fewer than the model has, into which its tree merges them: `split` begins at "
        "their ellipsoids. For clusterings that keep a tree, agglomerative and bisecting. Null: it begins at that of "
        "all rows.",
    )
    probability: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Probability that a row of the component lies within, in these columns; null: the surface is one "
        "Mahalanobis distance (one standard deviation) from the mean.",
    )
    split: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Place between the ellipsoid of the whole mixture or of the parents, 0, and those of the "
        "components, 1.",
    )


class Ellipsoid(Wire):
    """An ellipse, or an ellipsoid, of p columns in the units of the table, or of p principal coordinates."""

    centre: list[float] = Field(description="Mean, a number for each column.")
    axes: list[list[float]] = Field(description="Half axes from the centre as vectors, the longest first.")
    matrix: list[list[float]] = Field(
        description="Homogeneous matrix with p + 1 rows: [u, 1] times the matrix is [point of the surface, 1] for "
        "every row vector u of length 1. Its last row is the centre and 1."
    )


class Component(Ellipsoid):
    """The ellipsoid of a component, or a cluster."""

    component: int = Field(description="Number of the component or cluster, from 0.")
    name: str | None = Field(None, description="Name that a person has given to the cluster; null: none has.")
    parent: int | None = Field(
        None, description="Number of the parent that it is a part of, from 0; null: no parents were requested."
    )
    share: float = Field(description="Share of the rows that the component stands for.")


class EllipsoidsResponse(ModelResponse):
    """The ellipsoids of a model."""

    columns: list[str] = Field(
        description="Columns, in the order of all numbers below; of principal coordinates `principal 1` and so on."
    )
    directions: list[dict[str, float]] | None = Field(
        None,
        description="Weight of each prepared (scaled) column in each principal coordinate; null: none was requested.",
    )
    radius: float = Field(description="Mahalanobis distance of the surface from the mean.")
    components: list[Component] = Field(description="One ellipsoid for each component.")
    whole: Ellipsoid = Field(description="Ellipsoid of the mean and covariance of the whole mixture.")


class _Axes(NamedTuple):
    """The coordinates that are shown, of densities that have them among their columns."""

    normals: "Normals"
    names: list[str]
    places: "Labels"
    """(p,) of these among the columns of the densities."""
    offset: "Vector"
    scale: "Vector"
    """(p,) a number shown is offset plus scale times that of a row."""
    directions: list[dict[str, float]] | None = None


def ellipsoids(subject: Subject, request: EllipsoidsRequest) -> EllipsoidsResponse:
    """Raises InvalidRequest for columns that the model does not have, and parents that its tree does not have."""
    model = subject.model
    normals: Normals = model.algorithm.queries["ellipsoids"](model.params, model.state)
    names = list(model.preparation.layout.names)
    faults = [*_faults(request.columns or [], names), *_axes_faults(request, len(names))]
    if faults := [*faults, *_parent_faults(model, request, len(normals.shares))]:
        raise InvalidRequest(faults=faults)
    axes = _principal(normals, names) if request.principal else _columns(model, normals, request.columns, names)
    radius = radius_of(request.probability, axes.places.size)
    shape = axes.places, axes.scale, radius
    whole, groups = of_mixture(axes.normals, *shape), _groups(model, request)
    begin = whole if groups is None else of_groups(axes.normals, groups, *shape)
    parts = begin.between(of_components(axes.normals, *shape), request.split)
    return EllipsoidsResponse(
        **subject.fields,
        columns=axes.names,
        directions=axes.directions,
        radius=radius,
        components=[
            Component(
                component=j,
                name=subject.names.get(j),
                parent=None if groups is None else int(groups[j]),
                share=share,
                **_written(parts, j, axes.offset),
            )
            for j, share in enumerate(normals.shares.tolist())
        ],
        whole=Ellipsoid(**_written(whole, 0, axes.offset)),
    )


def _columns(model: Model, normals: "Normals", columns: list[str] | None, names: list[str]) -> _Axes:
    chosen = names[:MOST_COLUMNS] if columns is None else columns
    places = np.array([names.index(name) for name in chosen])
    offset, scale = (numbers[places] for numbers in model.preparation.scaling.units)
    return _Axes(normals, chosen, places, offset, scale)


def _principal(normals: "Normals", names: list[str]) -> _Axes:
    mean, directions = principal_axes(normals, MOST_COLUMNS)
    p = directions.shape[1]
    weights = [dict(zip(names, row, strict=True)) for row in directions.T.tolist()]
    shown = [f"principal {j + 1}" for j in range(p)]
    return _Axes(normals.projected(directions), shown, np.arange(p), -(mean @ directions), np.ones(p), weights)


def _groups(model: Model, request: EllipsoidsRequest) -> "Labels | None":
    """(k,) parents of the clusters; None: none were requested."""
    if request.parents is None or model.algorithm.grouped is None:
        return None
    return model.algorithm.grouped(model.params, model.state, request.parents)


def _axes_faults(request: EllipsoidsRequest, columns: int) -> Iterator[Fault]:
    if request.principal and request.columns is not None:
        yield Fault("/principal", "Give columns or principal coordinates, not both.")
    if request.principal and columns > MOST_PRINCIPAL:
        yield Fault(
            "/principal",
            f"The model has {columns} columns; principal coordinates are made of at most "
            f"{MOST_PRINCIPAL}: name columns.",
        )


def _parent_faults(model: Model, request: EllipsoidsRequest, clusters: int) -> Iterator[Fault]:
    if request.parents is None:
        return
    if model.algorithm.grouped is None:
        yield Fault("/parents", "The model keeps no tree of clusters: take agglomerative or bisecting_kmeans.")
    elif request.parents > clusters:
        yield Fault("/parents", f"The model has {clusters} clusters.")


def _faults(columns: Sequence[str], names: Sequence[str]) -> Iterator[Fault]:
    for place, name in enumerate(columns):
        if name not in names:
            yield Fault(f"/columns/{place}", no_such("The model has no prepared column", name, names), "unknown_column")
        elif name in columns[:place]:
            yield Fault(f"/columns/{place}", "This column is named twice.", "duplicate")


def _written(ellipsoids: Ellipsoids, place: int, offset: "Vector") -> dict[str, list[list[float]] | list[float]]:
    centre, block = ellipsoids.centres[place] + offset, ellipsoids.blocks[place]
    matrix = np.block([[block, np.zeros((centre.size, 1))], [centre[None], np.ones((1, 1))]])
    return {"centre": centre.tolist(), "axes": ellipsoids.axes[place].tolist(), "matrix": matrix.tolist()}


QUERY = Query(
    operation="describe_ellipsoids",
    request=EllipsoidsRequest,
    response=EllipsoidsResponse,
    run=ellipsoids,
    offered=declared("ellipsoids"),
)

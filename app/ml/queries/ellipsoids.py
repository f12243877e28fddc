"""The ellipsoids of a Gaussian or a Gaussian mixture in one to three columns, in the units of the table: where the rows
of each component lie.

A surface holds the points at one Mahalanobis distance from the mean. With `split` between 0 and 1 the ellipsoids are on
the way from that of all rows to those of the components, as an animation shows them.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from app.errors import Fault, InvalidRequest
from app.ml.models.model_response import ModelResponse
from app.ml.numerics.density.normal_ellipsoids import Ellipsoids, of_components, of_mixture, radius_of
from app.ml.query import Query, Subject, declared
from app.suggestions import no_such
from app.wire import Body, Wire

if TYPE_CHECKING:
    from app.ml.contract.algorithm import Labels, Vector
    from app.ml.numerics.density.normal_ellipsoids import Normals

MOST_COLUMNS = 3


class EllipsoidsRequest(Body):
    """The columns, and the distance of the surface from the mean."""

    columns: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MOST_COLUMNS,
        description="Prepared columns of the model, by name: an input that is a number, or a category as `plan=pro`. "
        "Null: the first three, or as many as there are.",
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
        description="Place between the ellipsoid of the whole mixture, 0, and those of its components, 1.",
    )


class Ellipsoid(Wire):
    """An ellipse, or an ellipsoid, of p columns in the units of the table."""

    centre: list[float] = Field(description="Mean, a number for each column.")
    axes: list[list[float]] = Field(description="Half axes from the centre as vectors, the longest first.")
    matrix: list[list[float]] = Field(
        description="Homogeneous matrix with p + 1 rows: [u, 1] times the matrix is [point of the surface, 1] for "
        "every row vector u of length 1. Its last row is the centre and 1."
    )


class Component(Ellipsoid):
    """The ellipsoid of a component."""

    component: int = Field(description="Number of the component, from 0.")
    share: float = Field(description="Share of the rows that the component stands for.")


class EllipsoidsResponse(ModelResponse):
    """The ellipsoids of a model."""

    columns: list[str] = Field(description="Columns, in the order of all numbers below.")
    radius: float = Field(description="Mahalanobis distance of the surface from the mean.")
    components: list[Component] = Field(description="One ellipsoid for each component.")
    whole: Ellipsoid = Field(description="Ellipsoid of the mean and covariance of the whole mixture.")


def ellipsoids(subject: Subject, request: EllipsoidsRequest) -> EllipsoidsResponse:
    """Raises InvalidRequest for columns that the model does not have."""
    model = subject.model
    names = list(model.preparation.layout.names)
    columns = names[:MOST_COLUMNS] if request.columns is None else request.columns
    if faults := [*_faults(columns, names)]:
        raise InvalidRequest(faults=faults)
    places = np.array([names.index(name) for name in columns])
    offset, scale = (numbers[places] for numbers in model.preparation.scaling.units)
    normals: Normals = model.algorithm.queries["ellipsoids"](model.params, model.state)
    radius = radius_of(request.probability, places.size)
    parts, whole = _both(normals, places, scale, radius)
    parts = whole.between(parts, request.split)
    shown = [_written(parts, j, offset) for j in range(len(parts.centres))]
    shares = normals.shares.tolist()
    return EllipsoidsResponse(
        **subject.fields,
        columns=columns,
        radius=radius,
        components=[
            Component(component=j, share=share, **one) for j, (share, one) in enumerate(zip(shares, shown, strict=True))
        ],
        whole=Ellipsoid(**_written(whole, 0, offset)),
    )


def _both(normals: "Normals", places: "Labels", scale: "Vector", radius: float) -> tuple[Ellipsoids, Ellipsoids]:
    return of_components(normals, places, scale, radius), of_mixture(normals, places, scale, radius)


def _faults(columns: Sequence[str], names: Sequence[str]) -> Iterator[Fault]:
    for place, name in enumerate(columns):
        if name not in names:
            yield Fault(f"/columns/{place}", no_such("The model has no prepared column", name, names), "unknown_column")
        elif name in columns[:place]:
            yield Fault(f"/columns/{place}", "This column is named twice.", "duplicate")


def _written(found: Ellipsoids, place: int, offset: "Vector") -> dict[str, list[list[float]] | list[float]]:
    centre, block = found.centres[place] + offset, found.blocks[place]
    matrix = np.block([[block, np.zeros((centre.size, 1))], [centre[None], np.ones((1, 1))]])
    return {"centre": centre.tolist(), "axes": found.axes[place].tolist(), "matrix": matrix.tolist()}


QUERY = Query(
    operation="describe_ellipsoids",
    request=EllipsoidsRequest,
    response=EllipsoidsResponse,
    run=ellipsoids,
    offered=declared("ellipsoids"),
)

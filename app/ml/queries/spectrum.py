"""The smallest eigenvalues of the graph that a model was fitted to, and the values of its rows by the eigenvectors.

As many eigenvalues are 0 as the graph has components. The largest step between two consecutive ones suggests the number
of clusters. At most 1,048,576 coordinates.
"""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from app.base.errors import BodyTooLarge
from app.base.wire import Body
from app.ml.kinds.query import Query, Subject, declared
from app.ml.models.model_response import ModelResponse
from app.ml.numerics.graphs.spectrum_view import eigengap, eigengap_ratio, widest_step

if TYPE_CHECKING:
    from app.ml.numerics.graphs.spectrum_view import SpectrumView

MOST_COORDINATES = 2**20
"""Coordinates of one response."""


class SpectrumRequest(Body):
    """The parts of the spectrum that are returned besides the eigenvalues."""

    coordinates: bool = Field(True, description="True: also the rows and their values by the eigenvectors.")


class Spectrum(ModelResponse):
    """Eigenvalues of a graph Laplacian, and coordinates of the training rows."""

    eigenvalues: list[float] = Field(description="Smallest eigenvalues of the Laplacian, ascending.")
    eigengap: float | None = Field(
        description="Largest step between two consecutive eigenvalues of these; null: there is one eigenvalue."
    )
    eigengap_ratio: float | None = Field(
        description="That step over the second largest one: near 1 another number of clusters is as plausible; null: "
        "no second step is above 0."
    )
    suggested_clusters: int = Field(description="Number of eigenvalues before that step.")
    components: int = Field(description="Number of components of the graph, parts that no edge joins.")
    rows: list[int] | None = Field(
        None, description="Numbers of the training rows in their dataset, ascending; null: not requested."
    )
    items: list[str] | None = Field(
        None, description="Names of these rows, by the column `item` of the training; null: it named none."
    )
    coordinates: list[list[float]] | None = Field(
        None, description="Values of each of these rows by the eigenvectors, in their order; null: not requested."
    )


def spectrum(subject: Subject, request: SpectrumRequest) -> Spectrum:
    """Raises BodyTooLarge for more coordinates than fit into a response."""
    model = subject.model
    view: SpectrumView = model.algorithm.queries["spectrum"](model.params, model.state)
    order = np.argsort(view.numbers, kind="stable")
    if request.coordinates and view.coordinates.size > MOST_COORDINATES:
        n, k = view.coordinates.shape
        raise BodyTooLarge(f"{n} rows have {k} coordinates each; one response holds {MOST_COORDINATES} in all.")
    return Spectrum(
        **subject.fields,
        eigenvalues=view.values.tolist(),
        eigengap=eigengap(view.values),
        eigengap_ratio=eigengap_ratio(view.values),
        suggested_clusters=widest_step(view.values),
        components=view.components,
        rows=view.numbers[order].tolist() if request.coordinates else None,
        items=view.items[order].tolist() if request.coordinates and view.items is not None else None,
        coordinates=view.coordinates[order].tolist() if request.coordinates else None,
    )


QUERY = Query(
    operation="read_spectrum",
    request=SpectrumRequest,
    response=Spectrum,
    run=spectrum,
    offered=declared("spectrum"),
)

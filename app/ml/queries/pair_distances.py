"""Distances between rows of numbers, by any metric of the catalogue: of each row to all rows, to others, or to a mean.

Ranges, variances and covariances are those of the reference rows. At most 1,000,000 distances.
"""

from collections.abc import Iterator
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.ml.kinds.query import Query
from app.ml.tables.distance_request import (
    DistanceMatrix,
    DistanceOptions,
    check_size,
    distance_faults,
    distance_matrix,
    fields_of,
)

MOST_ROWS = 100_000
MOST_COLUMNS = 1000
MAX_NAMED_ROWS = 10
"""Rows of a wrong length that are named."""

Number: TypeAlias = Annotated[float, Field(ge=-1e150, le=1e150)]
NumberRow: TypeAlias = Annotated[list[Number], Field(min_length=1, max_length=MOST_COLUMNS)]


class DistancesRequest(DistanceOptions):
    """Rows of numbers, and the metric."""

    rows: list[NumberRow] = Field(
        min_length=1, max_length=MOST_ROWS, description="Rows of as many numbers each as there are columns."
    )
    others: list[NumberRow] | None = Field(
        None, min_length=1, max_length=MOST_ROWS, description="Rows that distances lead to; null: `rows` themselves."
    )
    reference: list[NumberRow] | None = Field(
        None,
        min_length=1,
        max_length=MOST_ROWS,
        description="Rows whose ranges, variances and covariances, and whose mean, are used; null: `rows`.",
    )


def pair_distances(request: DistancesRequest) -> DistanceMatrix:
    """Raises InvalidRequest with every fault; BodyTooLarge for too many distances."""
    columns = len(request.rows[0])
    reference = request.rows if request.reference is None else request.reference
    faults = [*_length_faults(request, columns), *distance_faults(request, columns, len(reference))]
    if faults:
        raise InvalidRequest(faults=faults)
    beside = request.rows if request.others is None else request.others
    check_size(len(request.rows), 1 if request.to_mean else len(beside), columns)
    others = None if request.others is None else np.array(request.others)
    measured = distance_matrix(request, np.array(request.rows), others, np.array(reference))
    return DistanceMatrix.model_validate(fields_of(request, measured, columns))


def _length_faults(request: DistancesRequest, columns: int) -> Iterator[Fault]:
    for name in ("rows", "others", "reference"):
        wrong = [place for place, row in enumerate(getattr(request, name) or ()) if len(row) != columns]
        for place in wrong[:MAX_NAMED_ROWS]:
            yield Fault(f"/{name}/{place}", f"The first row has {columns} numbers.", "wrong_length")
        if len(wrong) > MAX_NAMED_ROWS:
            yield Fault(f"/{name}", f"And {len(wrong) - MAX_NAMED_ROWS} more like these.", "wrong_length")
    if request.to_mean and request.others is not None:
        yield Fault("/others", "Distances lead to the mean or to other rows: leave one of the two out.")


QUERY = Query(
    operation="measure_distances",
    request=DistancesRequest,
    response=DistanceMatrix,
    run=pair_distances,
    path="/v1/distances",
    tag="evaluation",
)

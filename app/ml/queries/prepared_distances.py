"""Distances between rows of a table in the prepared columns of a model: scaled, with categories as indicators.

The metrics are those of `POST /v1/distances`; ranges, variances and covariances are of the rows of the request. At most
1,000,000 distances.
"""

from typing import Any

from pydantic import Field

from app.base.errors import InvalidRequest, NotOffered
from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Accepts, Matrix
from app.ml.kinds.query import Query, Subject
from app.ml.models.model import Model
from app.ml.models.model_response import ModelResponse
from app.ml.tables.distance_request import (
    DistanceMatrix,
    DistanceOptions,
    check_size,
    distance_faults,
    distance_matrix,
    fields_of,
)
from app.ml.tables.rows import read_rows


class PreparedDistancesRequest(DistanceOptions):
    """Rows by column name, and the metric."""

    rows: list[dict[str, Any]] = Field(min_length=1, description="Rows, each an object of values by column name.")
    others: list[dict[str, Any]] | None = Field(
        None, min_length=1, description="Rows that distances lead to; null: `rows` themselves."
    )


class PreparedDistances(ModelResponse, DistanceMatrix):
    """Distances between rows in the prepared columns of a model."""

    columns: list[str] = Field(description="Prepared columns, by which distances are measured.")


def prepared_distances(subject: Subject, request: PreparedDistancesRequest) -> PreparedDistances:
    """Raises InvalidRequest or InvalidData with every fault; BodyTooLarge for too many distances; NotOffered for models
    of items, of texts or of a square with gaps.
    """
    preparation = subject.model.preparation
    if preparation.keeps_missing or preparation.keeps_categories or preparation.sparse:
        raise NotOffered(f"{subject.model.name} learned items, texts or rows with gaps, not columns of full numbers.")
    if request.to_mean and request.others is not None:
        detail = "Distances lead to the mean or to other rows: leave one of the two out."
        raise InvalidRequest(faults=[Fault("/others", detail)])
    rows = _matrix(subject, request.rows)
    others = None if request.others is None else _matrix(subject, request.others)
    names = list(preparation.layout.names)
    if faults := [*distance_faults(request, len(names), len(rows))]:
        raise InvalidRequest(faults=faults)
    check_size(len(rows), 1 if request.to_mean else len(rows if others is None else others), len(names))
    measured = distance_matrix(request, rows, others, rows)
    return PreparedDistances(**subject.fields, columns=names, **fields_of(request, measured, len(names)))


def _matrix(subject: Subject, rows: list[dict[str, Any]]) -> Matrix:
    model = subject.model
    table = read_rows({"rows": rows}, model.inputs, max_rows=subject.max_rows).table
    return model.preparation.matrix(model.preparation.raw(table))


def _numeric(model: Model) -> bool:
    """True for algorithms whose prepared columns are full numbers, not gaps or codes of categories."""
    return not nested.accepts(model.algorithm, model.params, model.task) & {Accepts.MISSING, Accepts.CATEGORIES}


QUERY = Query(
    operation="measure_prepared_distances",
    request=PreparedDistancesRequest,
    response=PreparedDistances,
    run=prepared_distances,
    offered=_numeric,
)

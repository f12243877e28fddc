"""Explain predictions: the path through a tree, the neighbours, the shares of members, stages or support vectors, the
parts of columns, the local coefficients. At most 32 MiB of it.
"""

from typing import Any

import orjson
from pydantic import Field

from app.base.errors import BodyTooLarge, NoExplanation
from app.ml.contract.algorithm import JSON, Matrix
from app.ml.contract.explanations import explains, explanations
from app.ml.contract.labels import Label
from app.ml.kinds.query import Query, Subject
from app.ml.models.model_response import Flag, ModelResponse, flags_of
from app.ml.tables.row_forms import PredictRequest
from app.ml.tables.rows import read_rows
from app.ml.training.reporting.reporting import finite, readable

MOST_BYTES = 2**25
"""Bytes of the explanations of one request: each row may list every one of many trees."""


class Explanations(ModelResponse):
    """Explanations of predictions, row by row, in the terms of the algorithm."""

    predictions: list[Any] = Field(
        description="One prediction for each row, in the order of the request; null for a row that could not "
        "be predicted."
    )
    classes: list[Label] | None = Field(None, description="Classes in the order of the probabilities.")
    target_function: str | None = Field(
        None, description="Explanations describe this function of the target, which was fitted; predictions do not."
    )
    explanations: list[Any] = Field(
        description="Neighbours, the path through a tree, the predictions of members or stages, local coefficients, …"
    )
    columns: list[str] = Field(description="Names of the columns of the matrix that the algorithm sees.")
    offsets: list[float] = Field(description="There, a number of the table is (number - offset) / scale.")
    scales: list[float] = Field(
        description="Scale of each of these columns, in the table's own units; a column of the matrix is "
        "(value - offset) / scale."
    )
    flags: list[Flag] = Field([], description="Rows whose prediction deserves doubt, by reason.")


def explain(subject: Subject, request: PredictRequest) -> Explanations:
    """Raises BodyTooLarge for more than fits into a response, else as a prediction does."""
    model = subject.model
    incoming = read_rows(request.model_dump(), model.inputs, max_rows=subject.max_rows)
    raw = model.preparation.raw(incoming.table)
    predicted = model.predict_raw(raw)
    matrix = model.preparation.matrix(raw)

    def explained(rows: Matrix) -> list[JSON]:
        each = explanations(model.algorithm, model.params, model.state, rows)
        return [readable(explanation, model.preparation, model.classes or ()) for explanation in each]

    response = explained(matrix[:1])
    size = len(orjson.dumps(response))
    if size * len(matrix) > MOST_BYTES:
        raise BodyTooLarge(f"A row's explanation takes {size} bytes; one request may return {MOST_BYTES // size}.")
    if len(matrix) > 1:
        response += explained(matrix[1:])
    listed = model.preparation.listed
    offsets, scales = listed.scaling.units
    return Explanations(
        **subject.fields,
        predictions=finite(predicted.predictions),
        classes=None if model.classes is None else list(model.classes),
        target_function=None if model.linearising == "none" else model.linearising,
        explanations=response,
        columns=list(listed.layout.names),
        offsets=offsets.tolist(),
        scales=scales.tolist(),
        flags=flags_of(predicted),
    )


QUERY = Query(
    operation="explain_rows",
    request=PredictRequest,
    response=Explanations,
    run=explain,
    offered=lambda model: explains(model.algorithm),
    refusal=NoExplanation,
)

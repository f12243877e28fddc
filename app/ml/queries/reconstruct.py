"""Rows as the model keeps them: predicted, and decoded again, in the units and categories of the table.

The error shows how much of a row is lost: large for a row that is unlike the training rows.
"""

from typing import Any

import numpy as np
from pydantic import Field

from app.base.wire import Body
from app.ml.kinds.query import Query, Subject
from app.ml.models.decoding import check_size, decoded, decodes
from app.ml.models.model_response import Flag, ModelResponse, flags_of
from app.ml.preparation.restoring import RestoredRow, restore
from app.ml.tables.rows import read_rows
from app.ml.training.reporting.reporting import finite


class ReconstructRequest(Body):
    """Rows to reconstruct."""

    rows: list[dict[str, Any]] = Field(min_length=1, description="Rows, each an object of values by column name.")


class Reconstruction(ModelResponse):
    """The reconstruction of each row."""

    rows: list[RestoredRow] = Field(description="Reconstruction of each row, in the order of the request.")
    errors: list[float | None] = Field(
        description="Squared distance between each row and its reconstruction, in the prepared (scaled) columns that "
        "the model learned from; null: beyond the largest number."
    )
    flags: list[Flag] = Field([], description="Rows whose prediction deserves doubt, by reason.")


def reconstruct(subject: Subject, request: ReconstructRequest) -> Reconstruction:
    """Raises BodyTooLarge for more rows than fit into a response, else as a prediction does."""
    model = subject.model
    check_size(model, len(request.rows), subject.max_rows)
    raw = model.preparation.raw(read_rows({"rows": request.rows}, model.inputs, max_rows=subject.max_rows).table)
    predicted = model.predict_raw(raw)
    again = decoded(model, predicted.values)
    with np.errstate(all="ignore"):
        errors = np.square(model.preparation.matrix(raw) - again).sum(axis=1)
    return Reconstruction(
        **subject.fields,
        rows=restore(model.preparation, again),
        errors=finite(errors),
        flags=flags_of(predicted),
    )


QUERY = Query(
    operation="reconstruct_rows", request=ReconstructRequest, response=Reconstruction, run=reconstruct, offered=decodes
)

"""The rows that predictions stand for, in the units and categories of the table: the centre of a cluster, or the row at
the coordinates of a projection.

At most 1,000,000 values in one response.
"""

import numpy as np
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.wire import Body
from app.ml.kinds.query import Query, Subject
from app.ml.models.decoding import check_size, decoded, decodes, prediction_faults
from app.ml.models.model_response import ModelResponse
from app.ml.preparation.restoring import RestoredRow, restore


class DecodeRequest(Body):
    """Predictions of the model."""

    predictions: list[int | list[float]] = Field(
        min_length=1, description="Labels of clusters, or coordinates of a projection, as the model predicts them."
    )


class Decoded(ModelResponse):
    """The rows that the predictions stand for."""

    rows: list[RestoredRow] = Field(description="One row for each prediction, in the order of the request.")


def decode(subject: Subject, request: DecodeRequest) -> Decoded:
    """Raises InvalidRequest for what the model does not predict, BodyTooLarge for more than fits into a response."""
    model = subject.model
    check_size(model, len(request.predictions), subject.max_rows)
    if faults := [*prediction_faults(model, request.predictions)]:
        raise InvalidRequest(faults=faults)
    return Decoded(**subject.fields, rows=restore(model.preparation, decoded(model, np.array(request.predictions))))


QUERY = Query(operation="decode_predictions", request=DecodeRequest, response=Decoded, run=decode, offered=decodes)

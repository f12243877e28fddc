"""Contributions of a response to predictions, in every format."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.formats.prediction import Extras
from app.ml.models.model import Predicted
from app.ml.models.reasons import reasons_of
from app.ml.tables.rows import Incoming

REASON = pa.struct([("column", pa.string()), ("contribution", pa.float64()), ("text", pa.string())])


def contributions_document(
    incoming: Incoming, predicted: Predicted | None, extras: Extras, spread: Callable[..., Any]
) -> dict[str, Any] | None:
    """The field `contributions` in JSON. spread: puts null where a row was not predicted."""
    if predicted is None or predicted.contributions is None:
        return None
    contributions = predicted.contributions
    document = {
        "method": contributions.method,
        "unit": contributions.unit,
        "columns": contributions.columns,
        "scores": contributions.scores,
        "base": contributions.base,
        "raw": spread(incoming, contributions.raw),
        "values": spread(incoming, contributions.values),
    }
    if contributions.standard_errors is not None:
        document["standard_errors"] = spread(incoming, contributions.standard_errors)
    if extras.top is not None:
        rows = reasons_of(contributions, incoming.table, predicted, extras.top)
        document["reasons"] = spread(incoming, [[reason._asdict() for reason in row] for row in rows])
    return document


def contribution_columns(
    incoming: Incoming, predicted: Predicted | None, extras: Extras
) -> Iterator[tuple[str, pa.Array]]:
    """Name and values of each column in Arrow: lists of k numbers where there are several scores."""
    if predicted is None or predicted.contributions is None:
        return
    contributions = predicted.contributions
    k = len(contributions.scores)
    yield "contribution_base", _listed(np.tile(contributions.base, (len(contributions.raw), 1)), k)
    yield "contribution_raw", _listed(contributions.raw, k)
    for place, name in enumerate(contributions.columns):
        yield f"contribution_of_{name}", _listed(contributions.values[:, :, place], k)
        if contributions.standard_errors is not None:
            yield f"standard_error_of_{name}", _listed(contributions.standard_errors[:, :, place], k)
    if extras.top is not None:
        rows = reasons_of(contributions, incoming.table, predicted, extras.top)
        cells = [[{name: getattr(reason, name) for name in REASON.names} for reason in row] for row in rows]
        yield "reasons", pa.array(cells, pa.list_(REASON))


def contribution_matrix(predicted: Predicted) -> NDArray[np.float64]:
    """(n, k (1 + p)) of npy: the base and the contributions of each column, score by score."""
    contributions = predicted.contributions
    assert contributions is not None  # noqa: S101  the request includes them
    base = np.broadcast_to(contributions.base[:, None], (*contributions.values.shape[:2], 1))
    parts = np.concatenate([base, contributions.values], axis=2)
    return parts.reshape(len(parts), -1)


def _listed(values: NDArray[np.float64], k: int) -> pa.Array:
    if k == 1:
        return pa.array(np.ascontiguousarray(values[:, 0]))
    ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(k)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.ascontiguousarray(values).ravel()))

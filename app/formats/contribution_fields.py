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
    found = None if predicted is None else predicted.contributions
    if found is None or predicted is None:
        return None
    document = {
        "method": found.method,
        "unit": found.unit,
        "columns": found.columns,
        "scores": found.scores,
        "base": found.base,
        "raw": spread(incoming, found.raw),
        "values": spread(incoming, found.values),
    }
    if found.standard_errors is not None:
        document["standard_errors"] = spread(incoming, found.standard_errors)
    if extras.top is not None:
        rows = reasons_of(found, incoming.table, predicted, extras.top)
        document["reasons"] = spread(incoming, [[reason._asdict() for reason in row] for row in rows])
    return document


def contribution_columns(
    incoming: Incoming, predicted: Predicted | None, extras: Extras
) -> Iterator[tuple[str, pa.Array]]:
    """Name and values of each column in Arrow: lists of k numbers where there are several scores."""
    found = None if predicted is None else predicted.contributions
    if found is None or predicted is None:
        return
    k = len(found.scores)
    yield "contribution_base", _listed(np.tile(found.base, (len(found.raw), 1)), k)
    yield "contribution_raw", _listed(found.raw, k)
    for place, name in enumerate(found.columns):
        yield f"contribution_of_{name}", _listed(found.values[:, :, place], k)
        if found.standard_errors is not None:
            yield f"standard_error_of_{name}", _listed(found.standard_errors[:, :, place], k)
    if extras.top is not None:
        rows = reasons_of(found, incoming.table, predicted, extras.top)
        cells = [[{name: getattr(reason, name) for name in REASON.names} for reason in row] for row in rows]
        yield "reasons", pa.array(cells, pa.list_(REASON))


def contribution_matrix(predicted: Predicted) -> NDArray[np.float64]:
    """(n, k (1 + p)) of npy: the base and the contributions of each column, score by score."""
    found = predicted.contributions
    assert found is not None  # noqa: S101  the request includes them
    base = np.broadcast_to(found.base[:, None], (*found.values.shape[:2], 1))
    parts = np.concatenate([base, found.values], axis=2)
    return parts.reshape(len(parts), -1)


def _listed(values: NDArray[np.float64], k: int) -> pa.Array:
    if k == 1:
        return pa.array(np.ascontiguousarray(values[:, 0]))
    ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(k)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.ascontiguousarray(values).ravel()))

"""Predictions as JSON: rows that come so, and the response `app.schemas.predictions.Prediction`, written once.

Numbers are written as the shortest that read back as the same float; what is not finite is null.
"""

from collections.abc import Sequence
from functools import lru_cache
from sys import intern
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from app.formats.contribution_fields import contributions_document
from app.formats.json_tables import STANDS, cut, order_of
from app.formats.prediction import (
    NO_EXTRAS,
    Extras,
    Version,
    WrittenPrediction,
    decided,
    intervals,
    names_of,
    outputs_of,
)
from app.formats.strict_json import parse
from app.ml.contract.algorithm import Matrix, Task
from app.ml.models.contributions import CONTRIBUTIONS, INTERVENTIONAL
from app.ml.models.model import Model, Predicted
from app.ml.numerics.decoding.json_numbers import LISTS, OBJECTS
from app.ml.preparation.flags import Flagged
from app.ml.tables.rows import Incoming, read_rows, whole


def json_rows(body: bytes, model: Model, *, max_rows: int, max_depth: int, let_bad_rows_pass: bool) -> Incoming:
    """Raises the kinds of MalformedJSON, and what `app.ml.tables.rows.read_rows` raises."""
    raw = number_rows(body, model.preparation.numbers, max_rows=max_rows, max_depth=max_depth)
    if raw is not None:
        return whole(raw)
    return read_rows(parse(body, max_depth), model.inputs, max_rows=max_rows, let_bad_rows_pass=let_bad_rows_pass)


def number_rows(body: bytes, names: tuple[str, ...] | None, *, max_rows: int, max_depth: int) -> Matrix | None:
    """The raw matrix (n, p) of a body of numbers for these inputs and nothing else; None if it is any other."""
    if names is None:
        return None
    cut_request = cut(body, b"data|rows", _header, max_depth, most=max_rows * len(names))
    if cut_request is None or cut_request.values.shape[1] != len(names):
        return None
    header = cut_request.rest or cut_request.names
    if header == names:
        return cut_request.values
    order = order_of(header, names)
    return None if order is None else np.ascontiguousarray(cut_request.values[:, order])


def _header(frame: Any, form: int) -> tuple[str, ...] | None:
    """The names of a body's columns; none where each row has them."""
    if frame == {"rows": STANDS[OBJECTS]} and form == OBJECTS:
        return ()
    if not isinstance(frame, dict) or frame.keys() != {"columns", "data"} or frame["data"] != STANDS[LISTS]:
        return None
    columns = frame["columns"]
    return tuple(map(intern, columns)) if isinstance(columns, list) and set(map(type, columns)) == {str} else None


def as_json(
    version: Version, model: Model, incoming: Incoming, predicted: Predicted | None, extras: Extras = NO_EXTRAS
) -> WrittenPrediction:
    """`predicted` is of the good rows, None if there are none. Bad rows are null in every list."""
    decisions: list[str] | None = None if extras.policy is None else []
    if extras.policy is not None and predicted is not None:
        predicted, decisions = decided(predicted, extras.policy)
    document: dict[str, Any] = {"predictions": _spread(incoming, predicted.predictions if predicted else [])}
    if version.names:
        document["names"] = _spread(incoming, names_of(version, predicted))
    if extras.confidence is not None:
        document["intervals"] = _spread(incoming, intervals(predicted))
        document["interval"] = model.interval_name
    if model.classes is not None:
        document["classes"] = model.classes
        document["probabilities"] = _spread(incoming, _probabilities(predicted))
    if set(extras.include) - {CONTRIBUTIONS, INTERVENTIONAL}:
        document["outputs"] = {name: _spread(incoming, values) for name, values in outputs_of(model, predicted, extras)}
    if extras.explains:
        document["contributions"] = contributions_document(incoming, predicted, extras, _spread)
    if decisions is not None:
        document["decisions"] = _spread(incoming, decisions)
    document["flags"] = [_flag(incoming, flag) for flag in predicted.flags] if predicted else []
    if incoming.assumed:
        document["assumed"] = dict(incoming.assumed)
    if incoming.faults:
        document["errors"] = [fault._asdict() for fault in incoming.faults]
    written = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    return WrittenPrediction(
        _head(version.model, version.version, version.digest, model.task) + written[1:],
        version.version,
        incoming.ignored,
        incoming.rows,
    )


@lru_cache(maxsize=1024)
def _head(model: str, version: int, digest: str, task: Task) -> bytes:
    """The names that all responses of a version begin with, up to the comma."""
    names = {"model": model, "version": version, "digest": digest, "task": task.value}
    return orjson.dumps(names)[:-1] + b","


def _probabilities(predicted: Predicted | None) -> Sequence[Any] | NDArray[np.float64]:
    return [] if predicted is None else np.ascontiguousarray(predicted.probabilities)


def _spread(incoming: Incoming, values: Sequence[Any] | NDArray[Any]) -> Sequence[Any] | NDArray[Any]:
    if len(values) == incoming.rows:
        return values
    spread = [None] * incoming.rows
    for row, value in zip(incoming.good.tolist(), values, strict=True):
        spread[row] = value
    return spread


def _flag(incoming: Incoming, flag: Flagged) -> dict[str, Any]:
    rows = flag.rows if incoming.good.size == incoming.rows else incoming.good[flag.rows]
    return {"code": flag.code, **({} if flag.column is None else {"column": flag.column}), "rows": rows}

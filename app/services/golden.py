"""Golden rows: a model goes live only if its stored bytes predict what it predicted when it was fitted."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.errors import GoldenMismatch
from app.ml.model import Model, decode
from app.ml.rows import read_rows


def prove(blob: bytes, golden: Mapping[str, Any]) -> Model:
    """Decode and predict the golden rows, as a request for them would. Raises GoldenMismatch, CorruptModel."""
    model = decode(blob)
    body = {"columns": golden["columns"], "data": golden["data"]}
    answer = model.predict(read_rows(body, model.inputs, max_rows=len(golden["data"])).table)
    same = _same(answer.predictions, golden["predictions"])
    if golden.get("probabilities") is not None:
        same = same and answer.probabilities is not None and _same(answer.probabilities, golden["probabilities"])
    if not same:
        raise GoldenMismatch
    return model


def _same(given: Any, expected: Any) -> bool:
    """Numbers to six digits, since another processor may round otherwise; labels exactly."""
    numbers, wanted = np.asarray(given), np.asarray(expected)
    if numbers.dtype.kind not in "iuf" or wanted.dtype.kind not in "iuf":
        return bool(np.array_equal(np.asarray(given, object), np.asarray(expected, object)))
    tiny = 1e-9 * float(np.abs(wanted).max(initial=0.0))
    return numbers.shape == wanted.shape and bool(np.allclose(numbers, wanted, rtol=1e-6, atol=tiny, equal_nan=True))

"""Outputs of a model beside its predictions, computed where a request includes them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix
from app.ml.models.contributions import contributions_of, method_in
from app.ml.models.model import Model, Predicted


def predict_with(
    model: Model, table: pa.Table | Matrix, names: Sequence[str], confidence: float | None = None
) -> Predicted:
    """Predictions as of `Model.predict`, with the outputs of these names, which the model offers, or contributions."""
    if not names:
        return model.predict(table, confidence)
    raw = table if isinstance(table, np.ndarray) else model.preparation.raw(table)
    return with_outputs(model, raw, model.predict_raw(raw, confidence), names)


def with_outputs(model: Model, raw: Matrix, predicted: Predicted, names: Sequence[str]) -> Predicted:
    """The predictions for a raw matrix (n, p), with the outputs of these names."""
    if not names:
        return predicted
    method = method_in(names)
    contributions = None if method is None else contributions_of(model, raw, method, limited=True)
    named = [name for name in names if not method_in([name])]
    x, offered = model.preparation.matrix(raw) if named else raw, model.algorithm.outputs
    with np.errstate(all="ignore"):
        computed = {name: offered[name].compute(model.params, model.state, x) for name in named}
    outputs = {name: _plain(values) for name, values in computed.items()}
    return predicted._replace(outputs=outputs, contributions=contributions)


def _plain(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """The values in the types that formats write: booleans, 64-bit whole numbers or floats."""
    dtype = np.bool_ if values.dtype == np.bool_ else np.int64 if values.dtype.kind in "iu" else np.float64
    return np.ascontiguousarray(values, dtype)

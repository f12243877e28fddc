"""Preparation of inputs as tensors: the raw matrix becomes the matrix, as `Preparation.matrix` makes it."""

import math

import numpy as np

from app.ml.contract.export_errors import ExportUnsupported
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.scaling import MAX_MULTIPLIABLE
from app.ml.numerics.tensor_graphs.distance_tensors import columns_of, held_within
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor
from app.ml.preparation.arrow_columns import UNSEEN
from app.ml.preparation.function_tensors import wide_tensor
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.projected import Projected
from app.ml.preparation.target_encoding import Encoding


def matrix_tensor(preparation: Preparation, raw: Tensor) -> Tensor:
    """(n, d) of the raw matrix (n, p). Raises ExportUnsupported for texts and features of pictures."""
    if isinstance(preparation, Projected):
        return matrix_tensor(preparation.behind, projected_tensor(preparation, raw))
    if type(preparation) is not Preparation:
        raise ExportUnsupported("Texts have no operators in ONNX that split them as this service does.")
    if preparation.fills is not None:
        raw = _filled(raw, preparation.fills)
    layout = preparation.layout
    used = columns_of(layout.direct, wide_tensor(preparation.basis, raw))
    encoded = [_encoded(encoding, raw[[encoding.place]]) for encoding in layout.encodings]
    if layout.keeps_categories:
        return _unseen_missing(used, layout.levels[: layout.plain_width]).beside(*encoded)
    parts = [_scaled(preparation, used)] if layout.direct.size else []
    missing = layout.codes.of_missing
    ends = np.append(layout.starts, layout.plain_width)[1:]
    for place, size in zip(layout.indicated.tolist(), (ends - layout.starts).tolist(), strict=True):
        code = _filled(raw[[place]], missing[[place]])
        parts.append(code.combine("Equal", np.arange(size, dtype=float)[None]).to_numbers())
    parts += encoded
    return parts[0].beside(*parts[1:]) if parts else raw[[]]


def projected_tensor(preparation: Projected, raw: Tensor) -> Tensor:
    """(n, q) coordinates of the projection that comes first."""
    return learner_tensor(preparation.projection, matrix_tensor(preparation.front, raw))


def _filled(x: Tensor, values: np.typing.NDArray[np.float64]) -> Tensor:
    """These values (p,) in place of missing numbers."""
    return x.graph.constant(values[None]).where(x.apply("IsNaN"), x)


def _scaled(preparation: Preparation, used: Tensor) -> Tensor:
    scaling = preparation.scaling
    numbers = (used - scaling.offset) / scaling.scale
    return held_within(numbers if preparation.keeps_missing else _filled(numbers, scaling.filled[0]), MAX_MULTIPLIABLE)


def _unseen_missing(codes: Tensor, levels: np.typing.NDArray[np.integer]) -> Tensor:
    """Codes of unseen categories become missing values."""
    if not levels.any():
        return codes
    unseen = np.where(levels > 0, UNSEEN, np.nan)[None]
    return codes.graph.constant(math.nan).where(codes.combine("Equal", unseen), codes)


def _encoded(encoding: Encoding, code: Tensor) -> Tensor:
    places = _filled(code, np.array([len(encoding.values) - 2.0]))
    last = places.graph.constant(len(encoding.values) - 1.0).where(places < 0.0, places).to_integers()
    columns = [last.among(column) for column in np.ascontiguousarray(encoding.values.T)]
    return columns[0].beside(*columns[1:])

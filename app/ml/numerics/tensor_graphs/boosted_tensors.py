"""Gradient-boosted trees as tensors."""

import math
from typing import Protocol

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.contract.offset_column import OffsetColumn
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.boosting.boosting_params import BoostingParams
from app.ml.numerics.boosting.loss_choice import LOG_LINKS, middle_level
from app.ml.numerics.boosting.response_losses import MAX_EXPONENT
from app.ml.numerics.tensor_graphs.class_tensors import logistic_share, softmax_shares, with_first
from app.ml.numerics.tensor_graphs.distance_tensors import held_within
from app.ml.numerics.tensor_graphs.tree_tensors import tree_totals
from app.ml.numerics.trees.forest import Trees


class BoostedState(Protocol):
    @property
    def trees(self) -> Trees: ...
    @property
    def base(self) -> Vector: ...
    @property
    def classes(self) -> int: ...
    @property
    def offset(self) -> OffsetColumn | None: ...


def boosted_shares(params: BoostingParams, state: BoostedState, x: Tensor) -> Tensor:
    """(n, 1) numbers, or (n, k) probabilities."""
    raw = tree_totals(state.trees, x) + state.base
    if state.offset is not None:
        raw = raw + _offset_tensor(state.offset, x)
    match state.classes:
        case 0:
            return _response(params, raw)
        case 1:
            return raw.repeated(np.ones(1))
        case 2:
            return with_first(logistic_share(raw))
    return softmax_shares(raw)


def _offset_tensor(offset: OffsetColumn, x: Tensor) -> Tensor:
    """(n, 1) as `OffsetColumn.values`."""
    numbers = x[[offset.column]]
    if not offset.logarithm:
        return numbers
    is_above = numbers > 0.0
    return numbers.where(is_above, 1.0).apply("Log").where(is_above, math.nan)


def _response(params: BoostingParams, raw: Tensor) -> Tensor:
    """(n, 1) as `response_of`."""
    if params.loss in LOG_LINKS:
        return held_within(raw, MAX_EXPONENT).apply("Exp")
    if params.loss == "cross_entropy":
        return logistic_share(raw)
    if raw.width == 1:
        return raw
    ascending, _ = raw.smallest(raw.width)
    return ascending[[params.levels.index(middle_level(params))]]

"""The losses that parameters of boosted trees name, the targets that each is defined for, and its predictions."""

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.base.suggestions import no_such
from app.ml.contract.algorithm import Data, Inputs, Matrix, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.contract.params import feature_count
from app.ml.contract.response_metric import ResponseMetric
from app.ml.numerics.boosting.boosting_params import BoostingParams
from app.ml.numerics.boosting.boosting_rows import best_base
from app.ml.numerics.boosting.losses import RowSums, share
from app.ml.numerics.boosting.response_losses import (
    Absolute,
    CrossEntropy,
    Focal,
    Huber,
    Quantile,
    ResponseLoss,
    Tweedie,
    huber_delta,
)
from app.ml.numerics.boosting.response_sums import ResponseSums
from app.ml.numerics.boosting.step_bounds import MAX_COLUMNS, StepBounds

LOG_LINKS = frozenset({"poisson", "gamma", "tweedie"})
"""Losses whose sum of trees is the logarithm of the expected number."""
LOG_STEP = 0.7
"""Largest value of a leaf of such a loss, unless the parameters state another: rare counts would be doubled at once."""
UNITS = dict.fromkeys(LOG_LINKS, "log(target)") | {"cross_entropy": "log_odds(target)"}
"""Unit of the sum of trees of losses whose response is not the sum."""
NEEDS = {"poisson": "0 or above", "gamma": "above 0", "tweedie": "0 or above", "cross_entropy": "from 0 to 1"}
"""Targets that a loss is defined for."""
NOT_CALIBRATED = "The focal loss draws probabilities towards 1/2: calibrate them before they are taken for frequencies."


def losses_of(params: BoostingParams, data: Data, classes: int) -> list[ResponseLoss]:
    """One for each sum of trees; none where `RowSums` has the loss. Raises InvalidData for targets without a loss."""
    if classes == 2 and params.class_loss == "focal":
        return [Focal(params.focal_gamma)]
    if classes > 2 and params.class_loss == "focal":
        raise InvalidData("The focal loss is of two classes.")
    if classes or params.loss == "squared":
        return []
    if not (inside := _in_domain(params.loss, data.y)).all():
        count = int((~inside).sum())
        needed = NEEDS[params.loss]
        raise InvalidData(
            f"The loss {params.loss} is of targets {needed}, and {count} of {data.y.size} rows have others."
        )
    if params.loss == "quantile":
        return [Quantile(level) for level in params.levels]
    return [_loss_of(params, data)]


def _loss_of(params: BoostingParams, data: Data) -> ResponseLoss:
    match params.loss:
        case "absolute":
            return Absolute()
        case "huber":
            return Huber(params.huber_delta or huber_delta(data.y - (data.offset.values(data.x) if data.offset else 0)))
        case "cross_entropy":
            return CrossEntropy()
    return Tweedie({"poisson": 1.0, "gamma": 2.0}.get(params.loss, params.tweedie_power))


def delta_of(losses: Sequence[ResponseLoss]) -> float | None:
    """Residual size at which the Huber loss turns linear; None: there is no such loss."""
    return next((loss.delta for loss in losses if isinstance(loss, Huber)), None)


def loss_faults(params: BoostingParams, inputs: Inputs) -> Iterator[Fault]:
    """Targets of the table for which the loss is not defined, and columns that parameters name and cannot have."""
    yield from column_faults_of(params, inputs)
    if inputs.size.classes > 2 and inputs.offset is not None:
        yield Fault("/name", f"An {inputs.offset} is part of one score, and more than two classes have several.")
    if inputs.offset == "exposure" and (inputs.size.classes or params.loss not in LOG_LINKS):
        yield Fault("/loss", f"An exposure belongs to the losses {', '.join(sorted(LOG_LINKS))}: take one of these.")
    if inputs.size.classes > 2 and params.class_loss == "focal":
        yield Fault("/class_loss", f"The focal loss is of two classes, and the target has {inputs.size.classes}.")
    ends = np.array(inputs.target_ends)
    if not inputs.size.classes and not _in_domain(params.loss, ends).all():
        yield Fault(
            "/loss",
            f"The loss {params.loss} is of targets {NEEDS[params.loss]}, and those of the table go from {ends.min():g} "
            f"to {ends.max():g}: take another loss, or leave rows out of the dataset.",
            "undefined",
        )


def _in_domain(loss: str, y: Vector) -> NDArray[np.bool_]:
    """(n,) targets that the loss is defined for."""
    if loss == "gamma":
        return y > 0
    if loss == "cross_entropy":
        return (y >= 0) & (y <= 1)
    return (y >= 0) if loss in NEEDS else np.ones(y.shape, np.bool_)


def first_sums(losses: Sequence[ResponseLoss], data: Data, train_mask: NDArray[np.bool_], classes: int) -> Vector:
    """(k,) the sums before any tree."""
    if not losses and (data.offset is None or classes not in {0, 2}):
        return best_base(data, train_mask, classes)
    y, weights = data.targets[train_mask, -1], data.weights[train_mask]
    offset = np.zeros(y.size) if data.offset is None else data.offset.values(data.x)[train_mask]
    if not losses and not classes:
        return np.array([np.average(y - offset, weights=weights)])
    return np.array([loss.base(y, weights, offset) for loss in losses or [CrossEntropy()]])


def row_sums(losses: Sequence[ResponseLoss], data: Data, base: Vector, classes: int) -> RowSums | ResponseSums:
    """The sums of the rows before any tree."""
    offset = 0.0 if data.offset is None else data.offset.values(data.x)
    return ResponseSums.of(losses, data, base, offset) if losses else RowSums.of(data, base, classes, offset)


def step_bounds(params: BoostingParams, data: Data, rng: np.random.Generator, *, twofold: bool) -> StepBounds:
    """Bounds of the steps of a fit of these rows. twofold: slopes have curvatures of their own."""
    by_default = LOG_STEP if data.task.of_numbers and params.loss in LOG_LINKS else math.inf
    max_step = by_default if params.max_delta_step is None else params.max_delta_step
    offset = None if data.offset is None else data.offset.column
    directions = tuple(params.monotone.get(name, 0) for name in _named_columns(data, params.monotone))
    names = _named_columns(data, [name for group in params.interactions for name in group])
    groups = tuple(sum(1 << g for g, group in enumerate(params.interactions) if name in group) for name in names)
    width, every = data.x.shape[1] - (offset is not None), MAX_COLUMNS
    of_tree = every if params.max_features_tree is None else feature_count(params.max_features_tree, width)
    of_node = every if params.max_features is None else feature_count(params.max_features, min(of_tree, width))
    drawn = params.max_samples < 1 or params.extra_trees or min(of_tree, of_node) < every
    squared = data.task.of_numbers and params.loss == "squared"
    return StepBounds(
        params.l1,
        max_step,
        twofold,
        offset,
        directions if any(directions) else (),
        groups,
        params.min_impurity_decrease * (1 if squared else 2),
        params.max_samples,
        of_tree,
        of_node,
        params.extra_trees,
        int(rng.integers(2**62)) if drawn else 0,
    )


def _named_columns(data: Data, wanted: Collection[str]) -> tuple[str, ...]:
    """The columns of the matrix if some are wanted. Raises InvalidData for names that it does not have."""
    if lacking := [name for name in wanted if name not in data.names]:
        raise InvalidData(f"No column of the fit has the name {lacking[0]!r}.")
    return data.names if wanted else ()


def column_faults_of(params: BoostingParams, inputs: Inputs) -> Iterator[Fault]:
    """Names of `monotone` and `interactions` that the table does not have, and columns without an order."""
    if any(params.monotone.values()) and inputs.size.classes > 2:
        yield Fault("/monotone", "More than two classes have several scores, which cannot all rise: take two classes.")
    for name in params.monotone if inputs.kinds else ():
        if name not in inputs.kinds:
            yield Fault(place("monotone", name), no_such("There is no feature", name, inputs.kinds))
        elif inputs.kinds[name] not in {ColumnKind.NUMERIC, ColumnKind.BOOLEAN}:
            yield Fault(place("monotone", name), f"Only numbers have a direction; this column is {inputs.kinds[name]}.")
    for g, group in enumerate(params.interactions if inputs.kinds else ()):
        for name in group:
            if name not in inputs.kinds:
                yield Fault(f"/interactions/{g}", no_such("There is no feature", name, inputs.kinds))
            elif inputs.kinds[name] == ColumnKind.DATETIME:
                yield Fault(f"/interactions/{g}", "A date becomes several columns: leave it out of the groups.")


def response_of(params: BoostingParams, raw: Matrix) -> Vector:
    """(n,) the expected number, the median or a quantile, of sums (k, n) of trees."""
    if params.loss in LOG_LINKS:
        return Tweedie(1.0).response(raw[0])
    if params.loss == "cross_entropy":
        return share(raw[0])
    if len(raw) > 1:
        return np.ascontiguousarray(np.sort(raw, axis=0)[params.levels.index(middle_level(params))])
    total: Vector = raw[0].copy()
    return total


def middle_level(params: BoostingParams) -> float:
    """The level of the quantile that is predicted."""
    return min(params.levels, key=lambda level: abs(level - 0.5))


def metric_of(params: BoostingParams) -> ResponseMetric | None:
    """The metric of a regression that fits the loss."""
    match params.loss:
        case "absolute" | "squared" | "huber":
            return None
        case "quantile":
            return ResponseMetric("pinball", middle_level(params))
        case "cross_entropy":
            return ResponseMetric("cross_entropy")
        case "poisson":
            return ResponseMetric("poisson_deviance", 1.0)
        case "gamma":
            return ResponseMetric("gamma_deviance", 2.0)
    return ResponseMetric("tweedie_deviance", params.tweedie_power)

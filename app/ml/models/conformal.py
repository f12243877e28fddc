"""Intervals of any regression, from its errors on rows that it has not seen: split conformal prediction.

If the rows held out and a new one could as well have come in any other order, the new error is as likely to take any
rank among theirs. So prediction ± the ⌈(m + 1)·confidence⌉-th smallest of m absolute errors holds a new target with at
least this confidence, whatever the model and the distribution: on average over rows, not for every kind of row. With
too few rows nothing bounds it.

Errors that grow with the prediction are ranked in units of their spread there (normalised conformal prediction), so
that the width follows the prediction. Rows that fit the spread have no rank: the guarantee is the same. With fewer
than 300 rows held out those are training rows, whose errors have the right proportions, if not the right size; with
more, a third of the rows held out, or all but 99. Coverage of 95 % intervals by fifths of the predicted price, for
log-normal prices with log-normal noise of 30 % (means of 1,000 simulations):

| rows held out | width | cheapest | second | third | fourth | dearest |
|---|---|---|---|---|---|---|
| 1,000 | adaptive | .97 | .93 | .95 | .95 | .95 |
| any | constant | 1.00 | 1.00 | 1.00 | .98 | .77 |

Where the noise is the same everywhere, adaptive intervals are 1 % wider with 1,000 rows held out.

Intervals that an algorithm computes itself presume its model of the noise. Where enough rows are held out to show
otherwise, the errors are ranked in units of these intervals' widths: the same guarantee, and widths that follow both
the algorithm and the prediction.

Where fewer rows are held out than a 95 % interval needs, errors of cross-validation stand in; of a small table folds
are fitted for them. The fits of these folds are stored too, and each sets ends about its own prediction
(`app.ml.models.cv_plus`), which has a guarantee. Otherwise the errors of fits without the row stand about the
prediction of the fit of all rows. The two fits differ, so there is no guarantee; the coverage is near the confidence
where leaving rows out hardly moves the fit.

References: Vovk, Gammerman & Shafer (2005), Algorithmic Learning in a Random World; Lei et al. (2018), J. Amer.
Statist. Assoc. 113:1094, section 5.2 for normalised errors; Barber et al. (2021), Annals of Statistics 49:486, for
what errors of cross-validation promise.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Algorithm, Matrix, Params, Vector
from app.ml.evaluation.splits import evenly
from app.ml.models import state_format
from app.ml.models.cv_plus import FoldFits, is_spread, rank
from app.ml.models.member_view import is_
from app.ml.models.own_widths import has_own, own_widths
from app.ml.statistics.error_by_prediction import NONE, error_of_predictions, error_spread
from app.ml.statistics.intervals import CONFIDENCE

EVERYWHERE = (-math.inf, math.inf)
"""Limits of a target that has none."""
ENOUGH = 19
"""Errors that a 95 % interval needs."""
ADAPTIVE = 60
"""Errors from which on some fit the spread."""
MIN_SPREAD_ERRORS, RANKED = 20, 99
"""Errors that fit the spread at least, and those left to rank, that a 99 % interval needs."""


class Calibration(NamedTuple):
    """Errors of a regression on rows that it has not seen. Without any, there are no intervals."""

    scores: Vector = np.zeros(0)
    """(m,) absolute errors over their spread, ascending."""
    spread: Matrix = NONE
    """(2, k) as of `error_spread`; without knots the spread is 1 everywhere."""
    crossed: bool = False
    """The errors are of the folds of cross-validation."""
    folds: FoldFits | None = None
    """The fits of these folds, whose errors `scores` are; they set the ends."""
    own: bool = False
    """The errors are in units of the widths that the algorithm itself computes."""

    @classmethod
    def of(
        cls,
        predicted: Vector,
        truth: Vector,
        *,
        crossed: bool = False,
        widths: Vector | None = None,
        spread: Matrix = NONE,
    ) -> "Calibration":
        """From predictions (m,) of rows, and their targets.

        widths: (m,) as of `own_widths`; None: without them. spread: as of `error_spread`, by other rows; without knots
        some of these rows fit it, if they are many.
        """
        with np.errstate(invalid="ignore", over="ignore"):  # an error that is not a number is as large as can be
            errors = (
                np.abs(truth - predicted)
                / error_of_predictions(spread, predicted)
                / (1.0 if widths is None else widths)
            )
        errors, has_widths = np.where(np.isnan(errors), np.inf, errors), widths is not None
        if crossed or spread.size or errors.size < ADAPTIVE:
            return cls(np.sort(errors), spread, crossed, own=has_widths)
        fits = np.zeros(errors.size, np.bool_)
        fits[evenly(errors.size, min(errors.size // 3, max(MIN_SPREAD_ERRORS, errors.size - RANKED)))] = True
        spread = error_spread(predicted[fits], errors[fits])
        if not spread.size:
            return cls(np.sort(errors), own=has_widths)
        return cls(np.sort(errors[~fits] / error_of_predictions(spread, predicted[~fits])), spread, own=has_widths)

    @property
    def name(self) -> str:
        """Name of the method, as a prediction reports it."""
        if self.folds:
            return "cv-plus"
        return "cross-validation" if self.crossed else "split-conformal"

    @property
    def bounds(self) -> bool:
        """True if these errors bound a 95 % interval."""
        return math.isfinite(reach(self.scores, CONFIDENCE))

    def ends(self, predicted: Vector, confidence: float, row_widths: Vector | float = 1.0) -> Matrix:
        """(n, 2) lower and upper ends about predictions (n,). row_widths: (n,) as of `own_widths`, if any."""
        with np.errstate(invalid="ignore", over="ignore"):
            widths = reach(self.scores, confidence) * error_of_predictions(self.spread, predicted) * row_widths
            return np.column_stack([predicted - widths, predicted + widths])

    def packed(self, arrays: dict[str, NDArray[Any]]) -> dict[str, JSON]:
        """The fields of a document; arrays go into `arrays`."""
        if not self.scores.size:
            return {}
        document: dict[str, JSON] = {"errors": state_format.pack(self.scores, "errors", arrays)}
        if self.spread.size:
            document["spread"] = state_format.pack(self.spread, "spread", arrays)
        if self.folds:
            document["folds"] = state_format.pack(self.folds, "folds", arrays)
        flags = {"crossed": self.crossed, "own": self.own}
        return document | {name: True for name, is_set in flags.items() if is_set}

    @classmethod
    def restored(cls, document: JSON, arrays: Mapping[str, NDArray[Any]]) -> "Calibration":
        """Bytes of earlier versions have errors without a spread, or none. Raises ValueError for what is no such."""
        scores = arrays["errors"] if "errors" in document else np.zeros(0)
        if scores.ndim != 1 or scores.dtype != np.float64 or not (scores >= np.append(0.0, scores[:-1])).all():
            raise ValueError("errors")
        spread = arrays["spread"] if "spread" in document else NONE
        if not is_spread(spread):
            raise ValueError("spread")
        folds = None
        if "folds" in document:
            folds = state_format.unpack(FoldFits, document["folds"], dict(arrays))
            if not folds.is_sound(scores, len(document["inputs"])):
                raise ValueError("folds")
        return cls(scores, spread, document.get("crossed") is True, folds, document.get("own") is True)


UNCALIBRATED = Calibration()


def method_of(algorithm: Algorithm[Any, Any], params: Params, errors: Calibration) -> str:
    """Name of the method of the intervals: `algorithm`, if no errors scale those of the algorithm itself."""
    return "algorithm" if has_own(algorithm, params) and not errors.own else errors.name


def with_intervals(algorithm: Algorithm[Any, Any], params: Params, errors: Calibration) -> Algorithm[Any, Any]:
    """The algorithm with its own intervals, scaled by `errors` in their units; else those of `errors`, or without any.

    Intervals of fits of folds take the raw matrix.
    """
    if has_own(algorithm, params) and not errors.own:
        return algorithm
    if not errors.scores.size:
        return replace(algorithm, interval=None)

    def interval(params: Any, state: Any, x: Matrix, confidence: float) -> Matrix:
        if errors.folds:
            return errors.folds.ends(errors.scores, x, confidence, by_widths=errors.own)
        row_widths = own_widths(algorithm, params, state, x) if has_own(algorithm, params) else 1.0
        return errors.ends(algorithm.predict(params, state, x), confidence, row_widths)

    return replace(algorithm, interval=interval)


def within(algorithm: Algorithm[Any, Any], limits: tuple[float, float]) -> Algorithm[Any, Any]:
    """The algorithm whose intervals end where the target does: they hold no less, for no target lies beyond."""
    original: Callable[..., Matrix] | None = algorithm.interval
    if original is None or limits == EVERYWHERE:
        return algorithm

    def interval(params: Any, state: Any, x: Matrix, confidence: float) -> Matrix:
        return np.clip(original(params, state, x, confidence), *limits)

    return replace(algorithm, interval=interval)


def limits_of(stored: JSON) -> tuple[float, float]:
    """Null is no limit. Raises ValueError for what is not in ascending order."""
    least, greatest = is_(stored, list)
    limits = -math.inf if least is None else float(least), math.inf if greatest is None else float(greatest)
    if not limits[0] < limits[1]:
        raise ValueError("limits")
    return limits


def reach(scores: Vector, confidence: float) -> float:
    """The score that a new row exceeds with no more than the rest of the confidence.

    >>> reach(np.arange(1.0, 20.0), 0.95), reach(np.arange(1.0, 19.0), 0.95)
    (19.0, inf)
    """
    place = rank(scores.size, confidence)
    return float(scores[place - 1]) if place <= scores.size else math.inf


def chosen(held_out: Calibration, crossed: Calibration) -> Calibration:
    """Errors on rows held out, unless they are too few for a 95 % interval and those of cross-validation are not."""
    return held_out if held_out.scores.size >= ENOUGH or crossed.scores.size < ENOUGH else crossed

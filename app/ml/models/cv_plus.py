"""CV+ prediction intervals: the fits of K folds, each about its own prediction by the errors of its own fold.

Fold k holds m_k of n rows; μ_k is the fit of all other rows, σ_k > 0 a spread that the same rows gave, and the score of
row i of fold k is S_i = |y_i − μ_k(x_i)| / σ_k(x_i). The interval of a new row x at confidence 1 − α is

    from the ⌊α(n + 1)⌋-th smallest of μ_k(i)(x) − σ_k(i)(x) S_i
    to the ⌈(1 − α)(n + 1)⌉-th smallest of μ_k(i)(x) + σ_k(i)(x) S_i.

If the rows and the new one could as well have come in any other order, it holds the new target with probability of at
least 1 − 2α − δ, where δ is the smaller of

- 2(1 − α)(K − 1)/(n + K): the mean of the K p-values of split conformal prediction, weighted by m_k + 1, is a p-value
  if it is doubled (Vovk & Wang 2020), and a target outside has a mean of at most (α(n + 1) + K − 1)/(n + K);
- (1 − K/n)/(K + 1), if all folds have n/K rows (Barber et al. 2021, theorem 4).

In practice the coverage is near 1 − α. Both proofs take any score that depends on no row of the fold but its own.
An interval that would leave out the prediction of the fit of all rows is widened to it, which covers no less.

References: Barber, Candès, Ramdas & Tibshirani (2021), Predictive inference with the jackknife+, Annals of Statistics
49:486; Vovk & Wang (2020), Combining p-values via averaging, Biometrika 107:791.
"""

import math
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import FittedLearner, Labels, Matrix, Vector
from app.ml.models.member_view import View
from app.ml.models.own_widths import own_widths
from app.ml.numerics.row_blocks import blocks
from app.ml.statistics.error_by_prediction import error_of_predictions

MOST_ROWS, MOST_FOLDS = 1000, 10
"""Training rows and folds up to which the fits of the folds are stored: a prediction sorts a number for each row."""
MOST_BYTES = 32 << 20
"""Size of these fits together."""
ROUNDING = 1e-12


class FoldFit(NamedTuple):
    """The fit of all folds but one."""

    learned: FittedLearner
    """Predicts the function of the target that is fitted; its view takes the raw matrix of the model."""
    spread: Matrix
    """(2, k) as of `error_spread`, of mean 1 over the rows of the fit."""


class FoldFits(NamedTuple):
    """The fits of K folds."""

    fits: tuple[FoldFit, ...]
    fold: Labels
    """(n,) the fold of each score, in their order."""

    def ends(self, scores: Vector, raw: Matrix, confidence: float, *, by_widths: bool = False) -> Matrix:
        """(n, 2) lower and upper ends for rows of the raw matrix (n, p); infinite where nothing bounds the target.

        own: the scores are in units of the widths that each fit computes itself.
        """
        place, ends = rank(scores.size, confidence) - 1, np.empty((len(raw), 2))
        if place >= scores.size:
            return np.full(ends.shape, [-math.inf, math.inf])
        with np.errstate(invalid="ignore", over="ignore"):
            centres = np.column_stack([fit.learned.predict(raw) for fit in self.fits])
            widths = np.column_stack(
                [error_of_predictions(fit.spread, centre) for fit, centre in zip(self.fits, centres.T, strict=True)]
            )
            if by_widths:
                widths *= np.column_stack([_own(fit.learned, raw) for fit in self.fits])
            for rows in blocks(len(raw), scores.size):
                reach = widths[rows][:, self.fold] * scores
                centre = centres[rows][:, self.fold]
                ends[rows, 0] = -np.partition(reach - centre, place, axis=1)[:, place]
                ends[rows, 1] = np.partition(reach + centre, place, axis=1)[:, place]
        unknown = np.isnan(ends)
        ends[unknown] = np.broadcast_to([-math.inf, math.inf], ends.shape)[unknown]
        return ends

    def is_sound(self, scores: Vector, inputs: int) -> bool:
        """True if it fits scores (n,) and a model of so many inputs."""
        fold = self.fold
        if fold.shape != scores.shape or not 0 <= fold.min(initial=0) <= fold.max(initial=0) < len(self.fits):
            return False
        return all(_is_sound(fit, inputs) for fit in self.fits)


def _own(learned: FittedLearner, raw: Matrix) -> Vector:
    x = raw if learned.view is None else learned.view.matrix(raw)
    return own_widths(learned.algorithm, learned.params, learned.state, x)


def _is_sound(fold_fit: FoldFit, inputs: int) -> bool:
    view = fold_fit.learned.view
    return isinstance(view, View) and view.places.max(initial=-1) < inputs and is_spread(fold_fit.spread)


def is_spread(spread: Matrix) -> bool:
    """True if this may be what `error_spread` returns."""
    if spread.ndim != 2 or len(spread) != 2 or spread.dtype != np.float64 or not np.isfinite(spread).all():
        return False
    return bool((np.diff(spread[0]) > 0).all() and (spread[1] > 0).all())


def rank(n: int, confidence: float) -> int:
    """⌈(n + 1)·confidence⌉, from 1: the place among n scores that bounds a new one; beyond n nothing does.

    >>> rank(19, 0.95), rank(18, 0.95)
    (19, 19)
    """
    return math.ceil((n + 1) * confidence * (1 - ROUNDING))


def guaranteed(sizes: Labels, confidence: float) -> float:
    """The share of new targets that the intervals hold at least, by the sizes (K,) of the folds.

    >>> round(guaranteed(np.full(5, 20), 0.95), 12), round(guaranteed(np.full(20, 1), 0.95), 12)
    (0.827619047619, 0.9)
    """
    n, folds = int(sizes.sum()), len(sizes)
    loss = 2 * confidence * (folds - 1) / (n + folds)
    if (sizes == sizes[0]).all():
        loss = min(loss, (1 - folds / n) / (folds + 1))
    return max(0.0, 1 - 2 * (1 - confidence) - loss)

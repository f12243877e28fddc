"""The fits of cross-validation, kept with the model of a small table for CV+ intervals."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import FittedLearner, Labels, Vector
from app.ml.evaluation.splits import Split
from app.ml.models import state_format
from app.ml.models.conformal import ENOUGH, Calibration
from app.ml.models.cv_plus import MOST_BYTES, MOST_FOLDS, MOST_ROWS, FoldFit, FoldFits
from app.ml.models.member_view import View
from app.ml.models.own_widths import has_own, own_widths
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.target_transform import carried
from app.ml.statistics.error_by_prediction import error_of_predictions
from app.ml.training.fitting.fit import Fitted, spread_of_training_rows
from app.ml.training.rows.training_set import TrainingSet


class ScoredFold(NamedTuple):
    """A fit, and the scores of the rows of its fold as of `app.ml.models.cv_plus`."""

    fit: FoldFit
    scores: Vector


def small(training_set: TrainingSet, rows: Labels, splits: Sequence[Split]) -> bool:
    """True if fits of these folds may be kept. Rows of a group are dependent: no guarantee is known for them."""
    return (
        training_set.task.of_numbers
        and training_set.groups is None
        and training_set.times is None
        and (not _own(training_set) or training_set.algorithm.plug_in(training_set.params))
        and ENOUGH <= rows.size <= MOST_ROWS
        and len(splits) <= MOST_FOLDS
    )


def scored(training_set: TrainingSet, name: str, whole: Preparation, fitted: Fitted, rows: Labels) -> ScoredFold | None:
    """The fit with the scores of these rows of its fold; None where the levels that `whole` knows are too few for it.

    name: of the algorithm. whole: the preparation of all folds, whose raw matrix the fit will get.
    """
    if not _known(whole, fitted.preparation):
        return None
    view = View.of(fitted.preparation, "none", whole, np.zeros(0, np.intp), 0)
    learned = FittedLearner(training_set.algorithm, find(name).learner(training_set.params), fitted.fit.state, view)
    data, params = training_set.data(fitted.preparation, rows), training_set.params
    with np.errstate(all="ignore"):
        spread = spread_of_training_rows(training_set, fitted)
        predicted = learned.algorithm.predict(params, learned.state, data.x)
        widths = own_widths(learned.algorithm, params, learned.state, data.x) if _own(training_set) else 1.0
        errors = np.abs(carried(training_set.preprocessing.target, data.y) - predicted)
        scores = errors / (error_of_predictions(spread, predicted) * widths)
    return ScoredFold(FoldFit(learned, spread), np.where(np.isnan(scores), np.inf, scores))


def calibrated(training_set: TrainingSet, made: Sequence[ScoredFold | None]) -> Calibration | None:
    """None where a fold has no fit to be kept, or all are too large together."""
    scored_folds = [fold for fold in made if fold is not None]
    if len(scored_folds) < len(made):
        return None
    scores = np.concatenate([fold.scores for fold in scored_folds])
    order = np.argsort(scores, kind="stable")
    fold = np.repeat(np.arange(len(scored_folds)), [fold.scores.size for fold in scored_folds])[order]
    folds = FoldFits(tuple(fold.fit for fold in scored_folds), fold)
    arrays: dict[str, Any] = {}
    state_format.pack(folds, "folds", arrays)
    if sum(array.nbytes for array in arrays.values()) > MOST_BYTES:
        return None
    return Calibration(scores[order], crossed=True, folds=folds, own=_own(training_set))


def _own(training_set: TrainingSet) -> bool:
    return has_own(training_set.algorithm, training_set.params)


def _known(whole: Preparation, part: Preparation) -> bool:
    """True if every level of the part is one of the whole: where levels are many, the most frequent may differ."""
    levels = {column.name: column.levels for column in whole.inputs}
    return all(
        set(column.levels or ()) <= set(levels[column.name] or ()) if column.name in levels else False
        for column in part.inputs
    )

"""Folds that are fitted for prediction intervals alone, where too few rows are held out to bound a target."""

from app.ml.catalogue import nested
from app.ml.contract.algorithm import Task
from app.ml.models.conformal import ENOUGH
from app.ml.models.cv_plus import MOST_ROWS
from app.ml.models.own_widths import has_own
from app.ml.training.planning.train_spec import TrainSpec

FOLDS = 5


def interval_folds(spec: TrainSpec, task: Task, train: int, test: int) -> int:
    """Number of folds of `train` rows, where `test` more are held out; 0: no interval needs them, or too few rows.

    Without a row held out nothing is promised of new rows; in order of time the earliest rows are tested by no fit.
    """
    algorithm, how = nested.entry_of(spec.algorithm).algorithm, spec.validation
    bounded = has_own(algorithm, spec.algorithm) and not algorithm.plug_in(spec.algorithm)
    if not task.of_numbers or bounded or how.time is not None or how.method in {"kfold", "loo"}:
        return 0
    return FOLDS if 0 < test < ENOUGH <= train <= MOST_ROWS else 0

"""One unit of work: a fit of one candidate without one fold, and its predictions of that fold."""

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.base.errors import ValiantError
from app.ml.contract.algorithm import Labels, in_turn
from app.ml.evaluation.splits import Split
from app.ml.models import state_format
from app.ml.preparation.target_transform import in_units
from app.ml.training.fitting.fit import fit_rows
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet

NUMERICAL_ERRORS = ArithmeticError, np.linalg.LinAlgError, ValueError
"""Errors of a fit that concern one candidate, not the search."""


class Unit(NamedTuple):
    """A fit of one candidate on one fold at one rung."""

    candidate: int
    fold: int
    rows: int | None
    """Largest number of training rows; None: all."""


class Trial(NamedTuple):
    """The outcome of a unit."""

    predictions: NDArray[np.float32]
    """(m,) or (m, k) to the rows of the fold, in the target's own units; empty after an error."""
    state_bytes: int = 0
    """Size of the arrays of the fitted state."""
    microseconds_a_row: float = 0.0
    """Time to prepare and predict the fold, for each of its rows."""
    error: str = ""


class Folds(NamedTuple):
    """The rows that candidates are compared on."""

    training_set: TrainingSet
    rows: Labels
    """Rows to learn from: no test row is among them."""
    splits: list[Split]
    """Folds of these: places among them."""

    def train_rows(self, fold: int, limit: int | None, seed: int) -> Labels:
        """Training rows of a fold, of which a limit takes a random sample that is the same for all candidates."""
        train = self.rows[self.splits[fold].train]
        if limit is None or train.size <= limit:
            return train
        rng = np.random.Generator(np.random.PCG64([seed, fold]))
        return np.sort(rng.choice(train, limit, replace=False))

    def truth(self, fold: int) -> NDArray[Any]:
        """(m,) the numbers or the class codes of the rows of a fold."""
        target, test = self.training_set.target, self.rows[self.splits[fold].test]
        return np.asarray(target.codes)[test] if self.training_set.task.of_classes else target.y[test]


def try_unit(folds: Folds, spec: TrainSpec, unit: Unit) -> Trial:
    """Fit and predict. Errors of the candidate are part of the result."""
    try:
        return _fitted(folds, spec, unit)
    except ValiantError as error:
        return _failed(error.detail)
    except NUMERICAL_ERRORS as error:
        return _failed(f"The fit failed: {error}")


def _fitted(folds: Folds, spec: TrainSpec, unit: Unit) -> Trial:
    training_set = folds.training_set.of(spec)._replace(each=in_turn)
    fitted = fit_rows(training_set, folds.train_rows(unit.fold, unit.rows, spec.seed), spec.seed)
    test = folds.rows[folds.splits[unit.fold].test]
    begun = time.perf_counter()
    data = training_set.data(fitted.preparation, test)
    predicted = training_set.algorithm.predict(training_set.params, fitted.fit.state, data.x)
    seconds = time.perf_counter() - begun
    if training_set.task.of_numbers:
        predicted = in_units(spec.preprocessing.target, predicted)
    if not np.isfinite(predicted).all():
        return _failed("It predicts numbers that are not finite.")
    arrays: dict[str, NDArray[Any]] = {}
    state_format.pack(fitted.fit.state, "state", arrays)
    size = sum(array.nbytes for array in arrays.values())
    with np.errstate(over="ignore"):
        narrow = np.asarray(predicted, np.float32)
    if not np.isfinite(narrow).all():
        return _failed("It predicts numbers that are too large to be compared.")
    return Trial(narrow, size, 1e6 * seconds / max(1, test.size))


def _failed(error: str) -> Trial:
    return Trial(np.zeros(0, np.float32), error=error[:500])

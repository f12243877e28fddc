"""Constant predictions of the training rows, which know nothing of any column: the mark that a model has to surpass.

They are the mean of the target, its median, its most frequent class, or the shares of its classes. The difference
of a metric is paired: both predictions are drawn on the same resamples of rows.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import Class
from app.ml.evaluation.baselines import Baseline
from app.ml.evaluation.metrics import log_losses
from app.ml.evaluation.paired_differences import better, difference, with_draws
from app.ml.statistics.metric_value import bootstrapped, proportion
from app.ml.statistics.metric_value import metric as metric_value
from app.ml.statistics.resampling import Rows

SAME = 1e-9
"""Relative difference of the largest and the smallest value of rows whose values are all the same."""


class ConstantClass(NamedTuple):
    """The constant predictions of a classification."""

    shares: Vector
    """(k,) share of each class among the training rows."""

    @classmethod
    def of(cls, codes: Labels, classes: int) -> "ConstantClass":
        return cls(np.bincount(codes, minlength=classes) / codes.size)

    def compare(
        self, truth: Labels, assigned: Labels, probabilities: Matrix | None, rows: Rows, classes: Sequence[Class]
    ) -> list[Baseline]:
        """Baselines of a model that assigns these classes. probabilities: (n, k); None: it has none."""
        most = int(self.shares.argmax())
        hits = {"model": (assigned == truth).astype(np.float64), "constant": (truth == most).astype(np.float64)}
        baselines = [_baseline("accuracy", classes[most], hits, rows)]
        if probabilities is not None:
            constant = np.broadcast_to(self.shares, (truth.size, self.shares.size))
            losses = {"model": log_losses(truth, probabilities), "constant": log_losses(truth, constant)}
            baselines.append(_baseline("log_loss", None, losses, rows))
        return baselines


class ConstantNumber(NamedTuple):
    """The constant predictions of a regression."""

    mean: float
    """Mean of the training rows."""
    median: float

    @classmethod
    def of(cls, target: Vector) -> "ConstantNumber":
        return cls(float(target.mean()), float(np.median(target)))

    def compare(self, truth: Vector, predicted: Vector, rows: Rows) -> list[Baseline]:
        """Baselines of a model with these predictions."""
        model = np.abs(truth - predicted)
        constants = {"rmse": self.mean, "mae": self.median}
        return [
            _baseline(metric, constant, {"model": model, "constant": np.abs(truth - constant)}, rows)
            for metric, constant in constants.items()
        ]


Constant = ConstantClass | ConstantNumber


def _baseline(metric: str, prediction: Class | None, values: Mapping[str, Vector], rows: Rows) -> Baseline:
    """values: by row, see `with_draws`."""
    n = values["model"].size
    drawn = {name: with_draws(metric, of_rows, rows) for name, of_rows in values.items()}
    apart = difference(metric, drawn["model"], drawn["constant"], n)
    if metric == "accuracy" and rows.alike:
        constant = proportion(metric, int(values["constant"].sum()), n)
    elif np.ptp(values["constant"]) <= SAME * values["constant"].max():
        constant = metric_value(metric, float(drawn["constant"][0]), None, "", n=n, label=None)
    else:
        constant = bootstrapped(metric, drawn["constant"][0], drawn["constant"][1:], n)
    first = better(metric, apart)
    surpassed = None if first is None else first == 0
    return Baseline(metric=metric, prediction=prediction, constant=constant, difference=apart, surpassed=surpassed)

"""Metrics of a regression by the loss that it minimises: deviances, pinball loss and cross entropy."""

import numpy as np
import scipy

from app.ml.contract.algorithm import Vector
from app.ml.contract.response_metric import ResponseMetric
from app.ml.evaluation.metrics import mean
from app.ml.numerics.unit_deviance import unit_deviances
from app.ml.statistics.metric_value import Metric, metric, with_note
from app.ml.statistics.resampling import Rows

NOTES = {
    "poisson_deviance": "Mean of 2·(y·log(y/μ) - y + μ).",
    "gamma_deviance": "Mean of 2·(y/μ - 1 - log(y/μ)).",
    "tweedie_deviance": "Mean unit deviance of a variance μ^{parameter:g}.",
    "pinball": "Mean pinball loss of the quantile of level {parameter:g}.",
    "cross_entropy": "Mean of -y·log(p) - (1 - y)·log(1 - p); of shares its smallest value is above 0.",
}
UNDEFINED = "The rows have targets for which the loss of this model is not defined."


def response_loss(truth: Vector, predicted: Vector, wanted: ResponseMetric, rows: Rows) -> Metric:
    """The metric of predictions (n,), with its definition."""
    with np.errstate(all="ignore"):
        values = _losses(truth, predicted, wanted)
    if not np.isfinite(values).all():
        return with_note(metric(wanted.name, np.nan, None, "", n=truth.size, label=None), UNDEFINED)
    measured = mean(wanted.name, np.maximum(values, 0.0), rows.draws, rows.weights)
    return with_note(measured, NOTES[wanted.name].format(parameter=wanted.parameter))


def _losses(y: Vector, mu: Vector, wanted: ResponseMetric) -> Vector:
    """(n,)"""
    name, p = wanted
    if name == "pinball":
        return np.asarray(np.maximum(p * (y - mu), (p - 1) * (y - mu)))
    if name == "cross_entropy":
        return np.asarray(-scipy.special.xlogy(y, mu) - scipy.special.xlogy(1 - y, 1 - mu))
    return unit_deviances(y, mu, p)

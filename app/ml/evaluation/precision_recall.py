"""Precision and recall of a score as its threshold falls, and average precision, the area below that curve.

    AP = Σ (Rᵢ − Rᵢ₋₁) Pᵢ

over the distinct scores, highest first: steps without interpolation, exact for tied scores. A score that knows nothing
has the share of positive rows, not 1/2. AP is a smooth function of the rows' weights; its derivatives with respect to
them give its standard error (the infinitesimal jackknife), and with it a Student-t interval of logit AP.

Simulated coverage of that interval at 95 %, with normal scores 0, 0.7 and 2 standard deviations apart, 50 to 1,000 rows
and 2 to 50 % positive ones, 1,000 samples each: 93 to 97 %. That of the percentile bootstrap of 50 rows is 86 to 91 %.

References: Davis & Goadrich (2006), ICML: 233; Boyd, Eng & Page (2013), ECML PKDD: 451, for the logit; Efron &
Tibshirani (1993), An Introduction to the Bootstrap, ch. 21.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.evaluation.roc import Steps
from app.ml.evaluation.splits import evenly
from app.ml.statistics.intervals import ratio


class AveragePrecision(NamedTuple):
    value: float
    """NaN without positive rows."""
    slopes: Vector
    """(n,) derivatives with respect to the weights of the rows."""


def average_precision(ranked: Steps) -> AveragePrecision:
    """Average precision with its curve, defined as in scikit-learn's `average_precision_score`."""
    precision, up, whole = _precision(ranked), ranked.positives, ranked.positives.sum()
    value = float(ratio((up * precision).sum(), whole))
    if not np.isfinite(value):
        return AveragePrecision(value, np.zeros(ranked.group.size))
    share = np.nan_to_num(ratio(up, _onward(up + ranked.negatives)))
    of_positives = precision - value + np.cumsum(share * (1 - precision))
    of_negatives = -np.cumsum(share * precision)
    return AveragePrecision(
        value, np.where(ranked.positive, of_positives[ranked.group], of_negatives[ranked.group]) / whole
    )


def curve(ranked: Steps, *, most: int = 201) -> tuple[Vector, Vector]:
    """Recall and precision at the scores of positive rows, highest first; both empty if one kind of row is missing."""
    up = ranked.positives
    if not up.sum() or not ranked.negatives.sum():
        return np.zeros(0), np.zeros(0)
    places = np.flatnonzero(up)[::-1]
    places = places[evenly(places.size, most)]
    return (_onward(up) / up.sum())[places], _precision(ranked)[places]


def _precision(ranked: Steps) -> Vector:
    """(g,) of the rows at and above each score; 0 where all of these weigh nothing."""
    return np.nan_to_num(ratio(_onward(ranked.positives), _onward(ranked.positives + ranked.negatives)))


def _onward(weights: Vector) -> Vector:
    """(g,) the sum of each and all after it."""
    return np.cumsum(weights[::-1])[::-1]

"""Values of one more measurement: expected or probable improvement, a confidence bound, or mere uncertainty.

All are larger where a measurement is worth more, and averaged over the possible values of measurements under way.

Source: Shahriari, Swersky, Wang, Adams & de Freitas (2016), Proc. IEEE 104:148, section IV.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.acquisition.improvement import log_expected_improvement, log_probability_of_improvement
from app.ml.numerics.acquisition.pending_measurements import Pending

AcquisitionName = Literal["expected_improvement", "probability_of_improvement", "confidence_bound", "uncertainty"]


class Acquisition(NamedTuple):
    name: AcquisitionName
    sign: float
    """1 to maximise the function, −1 to minimise it."""
    best: float
    """The best value so far, times the sign."""
    margin: float = 0.0
    """Improvement below which there is none."""
    kappa: float = 2.0
    """Standard deviations of the confidence bound."""

    def score(self, pending: Pending, x: Matrix) -> Vector:
        """(n,) a score in the order of the values; improvements as logarithms."""
        means, deviation = pending.moments(x)
        if self.name == "uncertainty":
            return deviation
        means = self.sign * means
        if self.name == "confidence_bound":
            bound: Vector = means.mean(axis=0) + self.kappa * deviation
            return bound
        best = np.maximum(self.best, (self.sign * pending.values).max(axis=1, initial=-math.inf))[:, None]
        log = log_expected_improvement if self.name == "expected_improvement" else log_probability_of_improvement
        each = log(means, deviation, best + self.margin)
        score: Vector = scipy.special.logsumexp(each, axis=0) - math.log(len(each))
        return score

    def value(self, score: float) -> float:
        """The value of a score: improvement in units of the function, a probability, the bound or the deviation."""
        if self.name == "confidence_bound":
            return self.sign * score
        return score if self.name == "uncertainty" else math.exp(score)

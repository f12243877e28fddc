"""Information of a preference between two candidates on the weights of goals, before a person gives it.

The mutual information of the preference and the weights: the entropy of the preference by the mean probability, less
the mean of its entropy by the weights. It is large where the outcome is open because the weights are, not because the
two candidates are as good as each other.

Source: Houlsby, Huszár, Ghahramani & Lengyel (2011), arXiv:1112.5745, section 2.
"""

import math

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics import row_blocks

NODES, STEP = np.linspace(-8.0, 8.0, 129, retstep=True)
SHARES = np.exp(-0.5 * NODES**2) * STEP / math.sqrt(2 * math.pi)
"""Trapezoidal rule over a normal variable: its error vanishes exponentially in the step for analytic functions."""
WIDE_DEVIATION = 4.0
"""Standard deviation from which the normal density is the smoother factor, so that the rule is over z itself."""
LOGITS, LOGIT_STEP = np.linspace(-40.0, 40.0, 321, retstep=True)


def first_preferred(means: Vector, deviations: Vector) -> Vector:
    """(n,) mean of σ(z) over normal z: the probability that the first of two is preferred."""
    return _moments(means, deviations)[0]


def pair_information(means: Vector, deviations: Vector) -> Vector:
    """(n,) bits on the weights by the preference of each pair, whose wᵀδ has this mean and standard deviation."""
    mean, entropy = _moments(means, deviations)
    bits: Vector = np.maximum(_bits(mean) - entropy, 0.0)
    return bits


def _moments(means: Vector, deviations: Vector) -> tuple[Vector, Vector]:
    """(n,) means over normal z of σ(z), and of its entropy in bits."""
    mean, entropy, wide = np.empty_like(means), np.empty_like(means), deviations > WIDE_DEVIATION
    for rule, chosen in ((_over_normal, np.flatnonzero(~wide)), (_over_logits, np.flatnonzero(wide))):
        for block in row_blocks.blocks(len(chosen), len(LOGITS)):
            rows = chosen[block]
            mean[rows], entropy[rows] = rule(means[rows, None], deviations[rows, None])
    return mean, entropy


def _over_normal(means: Matrix, deviations: Matrix) -> tuple[Vector, Vector]:
    p = scipy.special.expit(means + deviations * NODES)
    return p @ SHARES, _bits(p) @ SHARES


def _over_logits(means: Matrix, deviations: Matrix) -> tuple[Vector, Vector]:
    """By parts for the mean of σ: the integral of its derivative times the probability that z is above."""
    p, away = scipy.special.expit(LOGITS), (means - LOGITS) / deviations
    density = np.exp(-0.5 * away**2) / (deviations * math.sqrt(2 * math.pi))
    return scipy.special.ndtr(away) @ (p * (1 - p) * LOGIT_STEP), density @ (_bits(p) * LOGIT_STEP)


def _bits(p: Vector) -> Vector:
    """Entropy of a preference with this probability."""
    bits: Vector = (scipy.special.entr(p) + scipy.special.entr(1 - p)) / math.log(2.0)
    return bits

r"""Deterministic annealing of labels: rows without one belong to both classes, less so as a temperature falls.

Minimises for each temperature T, over w, b and the shares pᵤ of the positive class, whose mean is given,

    ½‖w‖² + Σ_L Cᵢ h(yᵢ fᵢ) + Σ_U pᵤ C₊ h(fᵤ) + (1 − pᵤ) C₋ h(−fᵤ) + T Σ_U pᵤ ln pᵤ + (1 − pᵤ) ln(1 − pᵤ)

with the hinge h(z) = max(0, 1 − z), by turns: the machine for the shares, in which each unlabelled row stands twice;
and the shares for the machine, pᵤ = 1/(1 + exp(−(gᵤ − ν)/T)) with gᵤ = C₋ h(−fᵤ) − C₊ h(fᵤ) and ν such that their mean
is as given. At high temperatures the sum has one minimum, which is followed as it falls: fewer local minima catch it
than where labels switch from the start.

Reference: Sindhwani, Keerthi & Chapelle (2006), Deterministic annealing for semi-supervised kernel machines, ICML: 841.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Vector
from app.ml.numerics.support_vectors.label_switching import HalfLabelled
from app.ml.numerics.support_vectors.smo import Settings
from app.ml.numerics.support_vectors.two_classes import TwoClasses, separated

HOTTEST, COLDEST = 10.0, 0.05
"""First and last temperature, in units of the larger cost."""
TURNS = 10
"""Machines of one temperature at most."""
ROUGH = 1e-2
"""Tolerance of the machines, whose values are no result."""
STILL, HARD = 1e-3, 1e-3
"""Mean change of the shares at the end of a temperature; mean distance from 0 or 1 at which labels are certain."""


def annealed(rows: HalfLabelled, temperatures: int, settings: Settings) -> Vector:
    """(m,) values of the unlabelled rows, higher for the positive class. Needs 0 < positives < m."""
    m, n = rows.unlabelled, len(rows.rows.diagonal)
    twice = rows.rows.take(np.concatenate([np.arange(n), np.arange(rows.signs.size, n)]))
    signs = np.concatenate([rows.signs, np.ones(m), -np.ones(m)])
    cost_of, rough = np.array(rows.costs_of), settings._replace(tol=max(ROUGH, settings.tol))
    share = rows.positives / m
    shares, coef, values = np.full(m, share), np.zeros(n + m), np.zeros(m)
    for temperature in cost_of.max() * np.geomspace(HOTTEST, COLDEST, temperatures):
        for _ in range(TURNS):
            costs = np.concatenate([rows.costs, shares * cost_of[1], (1 - shares) * cost_of[0]])
            solution = separated(TwoClasses(twice, signs, costs), rough, _within(coef, costs))
            coef, before = solution.coef, shares
            values = (signs - solution.residual + solution.intercept)[rows.signs.size :][:m]
            gains = cost_of[0] * np.maximum(0.0, 1 + values) - cost_of[1] * np.maximum(0.0, 1 - values)
            shares = _shares(gains / temperature, share)
            if np.abs(shares - before).mean() < STILL:
                break
        if np.minimum(shares, 1 - shares).mean() < HARD:
            break
    return values


def _within(coef: Vector, costs: Vector) -> Vector:
    """Coefficients cut off at new costs; of the sign that then has more, all in proportion, so that the sum is 0."""
    cut = np.clip(coef, -costs, costs)
    up, down = float(cut[cut > 0].sum()), float(-cut[cut < 0].sum())
    if not min(up, down) > 0:
        return np.zeros(coef.size)
    return np.where(cut > 0, min(1.0, down / up), min(1.0, up / down)) * cut


def _shares(scores: Vector, mean: float) -> Vector:
    """(m,) logistic function of the scores less the number for which they have this mean."""
    reach = 40.0
    shift = scipy.optimize.brentq(
        lambda middle: scipy.special.expit(scores - middle).mean() - mean, scores.min() - reach, scores.max() + reach
    )
    return np.asarray(scipy.special.expit(scores - shift))

"""Separation of classes by planes, where the likelihood of a logistic regression has no maximum.

Reference: Albert & Anderson (1984), On the existence of maximum likelihood estimates, Biometrika 71:1.
"""

from collections.abc import Iterator

import numpy as np

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.linear_models.softmax import losses

SEPARABLE = (
    "A plane separates the classes without a mistake: the penalty alone keeps the coefficients finite, their size "
    "follows from it, and their errors are not reported. Probabilities so sure deserve doubt; a larger "
    "penalty is modest."
)
UNBOUNDED = (
    "A plane separates the classes without a mistake: without a penalty the likelihood has no maximum, and the "
    "coefficients grow until rounding stops them. Their errors are not reported. Set l2 above 0."
)
NEARLY_UNBOUNDED = (
    "Some training rows have a probability of 1 but for rounding: perhaps a plane separates a part of the rows without "
    "a mistake, and without a penalty some coefficients grow without limit. Set l2 above 0 to be sure of them."
)
SURE = 1e-8
"""Loss of a row whose probability is 1 but for rounding."""


def separates(scores: Matrix, targets: Matrix) -> bool:
    """True if every row is on the right side of the planes. scores, targets: (n, s), of one class of two, or of all."""
    if scores.shape[1] == 1:
        return bool((np.where(targets > 0, scores, -scores) > 0).all())
    right = np.where(targets > 0, scores, -np.inf).max(axis=1)
    return bool((right > np.where(targets > 0, -np.inf, scores).max(axis=1)).all())


def separation_warnings(scores: Matrix, targets: Matrix, *, separated: bool, penalised: bool) -> Iterator[str]:
    """Sentences on probabilities of 1, which only a penalty keeps from being exactly that. apart: as `separates`."""
    if separated:
        yield SEPARABLE if penalised else UNBOUNDED
    elif not penalised and (losses(scores, targets) < SURE).any():
        yield NEARLY_UNBOUNDED

"""Softmax of scores: probabilities of classes and losses, to all their digits however small they are.

Two classes have one score, the log odds of the second; more have one each. With scores z (n, s) and targets t (n, s),
the loss of a row is  log Z − Σ zⱼtⱼ  with Z = 1 + exp z for s = 1 and Z = Σ exp zⱼ else, so that one
code serves both.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector


def probabilities(scores: Matrix) -> Matrix:
    """(n, s) → (n, s): of the second class when s = 1, else of each."""
    if scores.shape[1] == 1:
        small = np.exp(-np.abs(scores))  # of whichever class is less likely, before dividing: it never overflows
        return np.asarray(np.where(scores < 0, small, 1.0) / (1.0 + small))
    share = np.exp(scores - np.maximum.reduce(scores, axis=1, keepdims=True))
    share /= np.add.reduce(share, axis=1, keepdims=True)
    return np.asarray(share)


def of_two(scores: Matrix) -> Matrix:
    """Log odds of the second class (n, 1) → probabilities (n, 2), each to all its digits however small it is."""
    against = np.empty((len(scores), 2))
    against[:, :1] = scores
    np.negative(scores, out=against[:, 1:])
    np.minimum(against, _LARGEST, out=against)
    np.exp(against, out=against)
    against += _ONE
    return np.asarray(np.divide(_ONE, against, out=against))


def one_of_two(odds: float) -> Matrix:
    """`of_two` of a single row, (1, 2): numpy takes longer to begin with an array than to compute one number."""
    shares = np.empty((1, 2))
    shares[0, 0], shares[0, 1] = _share(odds), _share(-odds)
    return shares


def _share(against: float) -> float:
    least = MAX_EXPONENT if against > MAX_EXPONENT else against  # noqa: FURB136  `min` takes ten times as long
    return 1.0 / (1.0 + float(np.exp(least)))


MAX_EXPONENT = 709.0
"""e^710 is infinite."""
_LARGEST, _ONE = np.array(MAX_EXPONENT), np.array(1.0)
"""Arrays, as a number is made one with each use, for as long as a row takes."""


def losses(scores: Matrix, targets: Matrix | NDArray[np.bool_]) -> Vector:
    """Minus the log-likelihood of each row, (n,)."""
    if scores.shape[1] == 1:
        return np.logaddexp(0.0, np.where(targets > 0, -scores, scores))[:, 0]
    return _beside_own(scores, targets).losses


class Likelihood(NamedTuple):
    losses: Vector
    """(n,)."""
    slopes: Matrix
    """(n, s), of the loss by each score: probabilities less targets."""


def likelihood(scores: Matrix, targets: Matrix | NDArray[np.bool_]) -> Likelihood:
    """`losses` and their slopes at once: one exponential for both, and small losses to all their digits."""
    if scores.shape[1] == 1:
        z, t = scores[:, 0], targets[:, 0]
        small = np.abs(z)
        np.exp(np.negative(small, out=small), out=small)
        loss = np.maximum(z, 0)
        loss -= z * t  # exactly 0 on the right side
        loss += np.log1p(small)
        slopes = np.where(z < 0, small, 1.0)
        slopes /= np.add(small, 1, out=small)
        slopes -= t
        return Likelihood(loss, slopes[:, None])
    parts = _beside_own(scores, targets)
    return Likelihood(parts.losses, (parts.shares / (1 + parts.rest)).T - targets)


class _BesideOwn(NamedTuple):
    losses: Vector
    """(n,)."""
    shares: Matrix
    """(s, n) of each class, in proportion to the likeliest."""
    rest: Vector
    """(n,) of all but the likeliest."""


def _beside_own(scores: Matrix, targets: Matrix | NDArray[np.bool_]) -> _BesideOwn:
    """More than two classes, their scores less that of the own class."""
    classes = np.array(scores.T, order="C")  # sums over classes, row by row of it, are quick
    classes -= np.add.reduce(classes * targets.T, axis=0)
    highest = np.maximum.reduce(classes, axis=0)
    classes -= highest
    shares = np.exp(classes, out=classes)
    best = shares == 1
    other_shares = np.add.reduce(np.where(best, 0.0, shares), axis=0) + (np.add.reduce(best, axis=0) - 1)
    return _BesideOwn(highest + np.log1p(other_shares), shares, other_shares)

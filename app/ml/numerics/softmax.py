"""Cross-entropy of a linear softmax, with its derivatives.

Two classes have one score, the log odds of the second; more have one each. With scores z (n, s) and targets t (n, s),
the loss of a row is  log Z − Σ zⱼtⱼ  with Z = 1 + exp z for s = 1 and Z = Σ exp zⱼ else, so that one
code serves both.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import scipy

from app.ml.contract import Matrix, Vector
from app.ml.numerics.linalg import centred, weighted_gram


class Linear(NamedTuple):
    coef: Matrix
    """(d, s)."""
    intercept: Vector
    """(s,)."""


def probabilities(scores: Matrix) -> Matrix:
    """(n, s) → (n, s): of the second class when s = 1, else of each."""
    if scores.shape[1] == 1:
        small = np.exp(-np.abs(scores))  # of whichever class is less likely, before dividing: it never overflows
        return np.asarray(np.where(scores < 0, small, 1.0) / (1.0 + small))
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return np.asarray(share)


def losses(scores: Matrix, targets: Matrix) -> Vector:
    """Minus the log-likelihood of each row, (n,)."""
    if scores.shape[1] == 1:
        return np.logaddexp(0.0, np.where(targets > 0, -scores, scores))[:, 0]
    return np.asarray(scipy.special.logsumexp(scores - (scores * targets).sum(axis=1, keepdims=True), axis=1))


@dataclass(frozen=True)
class CrossEntropy:
    """Mean loss per unit of weight plus ½λ‖coef‖²/Σw, over a point (m,) with m = (d + 1)·s.

    In coordinates of its own: each column is centred and divided by √(variance + λ/Σw), the last one is all ones.
    So curvatures are about 1 or less whatever the units of the inputs, and a gradient is a pure number.
    """

    x: Matrix
    """(n, d + 1)."""
    targets: Matrix
    """(n, s)."""
    weights: Vector
    """(n,), summing to 1."""
    penalty: Vector
    """(d + 1,), zero for the ones."""
    mean: Vector
    unit: Vector

    @classmethod
    def of(cls, x: Matrix, targets: Matrix, weights: Vector, penalty: float) -> Self:
        """penalty: λ > 0. targets: (n, 1) with 1 for the second class, or one-hot (n, s)."""
        share = weights / weights.sum()
        rows = centred(x, weights)
        ridge = penalty / weights.sum()
        unit = np.sqrt(share @ (rows.x * rows.x) + ridge)
        inputs = np.column_stack([rows.x / unit, np.ones(len(x))])
        return cls(inputs, targets, share, np.append(ridge / unit / unit, 0.0), rows.mean, unit)

    @property
    def start(self) -> Vector:
        """No influence of the inputs, and the observed share of each class."""
        share = self.weights @ self.targets
        odds = np.log(share) - (np.log1p(-share) if len(share) == 1 else np.log(share).mean())
        point = np.zeros((self.x.shape[1], len(share)))
        point[-1] = odds
        return point.ravel()

    def linear(self, point: Vector) -> Linear:
        """The same in the coordinates of the data."""
        b = self._unpacked(point)
        coef = b[:-1] / self.unit[:, None]
        return Linear(coef, b[-1] - self.mean @ coef)

    def __call__(self, point: Vector) -> tuple[float, Vector]:
        """Value and gradient (m,)."""
        b = self._unpacked(point)
        scores = self.x @ b
        shrunk = self.penalty[:, None] * b
        value = self.weights @ losses(scores, self.targets) + 0.5 * (shrunk * b).sum()
        gradient = self.x.T @ (self.weights[:, None] * (probabilities(scores) - self.targets)) + shrunk
        return float(value), gradient.ravel()

    def hessian(self, point: Vector) -> Matrix:
        """(m, m), positive definite.

        The same constant added to all scores changes nothing when s > 1. Along those directions the mean curvature
        of all others is added; the gradient has no part in them, so no Newton step is changed by it.
        """
        p = probabilities(self.x @ self._unpacked(point))
        d, s = self.x.shape[1], p.shape[1]
        blocks = np.zeros((d, s, d, s))
        for i in range(s):
            for j in range(i + 1):
                shared = self.weights * p[:, i] * (1 - p[:, i] if i == j else p[:, j])
                gram = weighted_gram(self.x, shared)
                blocks[:, i, :, j] = blocks[:, j, :, i] = gram if i == j else -gram
        own = np.arange(d)
        for i in range(s):
            blocks[own, i, own, i] += self.penalty
        if s > 1:
            blocks[own, :, own, :] += np.einsum("isis->", blocks) / (d * s * s)
        return blocks.reshape(d * s, d * s)

    def _unpacked(self, point: Vector) -> Matrix:
        return point.reshape(self.x.shape[1], -1)

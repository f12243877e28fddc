"""Two learners on the same rows: losses, and paired differences with their standard errors.

Folds share rows, so their standard error is the corrected one of Nadeau & Bengio (2003): over J splits with n₁ rows to
train on and n₂ to test on it is √(1/J + n₂/n₁) of the standard deviation, not √(1/J).
"""

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[Any]
SMALLEST = 1e-15
"""Probability that a loss is taken of."""


def optional(name: str) -> Any:
    """A package that may be missing: then None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def of_kind(module: Any, prefix: str, *, classes: bool, **how: Any) -> Callable[..., Any]:
    """`RandomForest` as classifier or as regressor, with settings."""
    return partial(getattr(module, prefix + ("Classifier" if classes else "Regressor")), **how)


def class_losses(probabilities: Array, codes: Array) -> dict[str, float]:
    """probabilities: (n, k). codes: (n,) the true columns."""
    shares = np.maximum(probabilities[np.arange(codes.size), codes], SMALLEST)
    return {"log-loss": float(-np.log(shares).mean()), "error": float((probabilities.argmax(axis=1) != codes).mean())}


class Paired(NamedTuple):
    """Mean loss less that of the peer, over J splits."""

    difference: float
    error: float
    splits: int

    @classmethod
    def of(cls, ours: Array, theirs: Array, shared: float) -> "Paired":
        """shared: test rows for each training row, if splits share rows; else 0."""
        lead = ours - theirs
        error = float(lead.std(ddof=1)) * math.sqrt(1 / lead.size + shared)
        return cls(float(lead.mean()), error, lead.size)

    @property
    def t(self) -> float:
        """Standard errors behind the peer; 0 where nothing varies."""
        return self.difference / self.error if self.error else 0.0

    @property
    def z(self) -> float:
        """The normal deviate that is as rare as `t` with J - 1 degrees of freedom."""
        tail = stats.t.sf(abs(self.t), self.splits - 1)
        return math.copysign(float(stats.norm.isf(tail)), self.t)


def together(each: list[float]) -> float:
    """Standard errors of several tables as one: their sum over the root of their number (Stouffer)."""
    return sum(each) / math.sqrt(len(each)) if each else 0.0

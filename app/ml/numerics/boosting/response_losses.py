"""Losses of a number y beside a sum F of trees: slopes, the best constant, the best value of a leaf, and the response.

| loss | g | h | response |
|---|---|---|---|
| absolute | sign(F - y) | 1 | F |
| huber | F - y within ±delta | 1, which majorises | F |
| quantile t | [y < F] - t | 1 | F |
| tweedie p, of which Poisson is 1 and gamma 2 | e^((2-p)F) - y e^((1-p)F) | its derivative | e^F |
| cross entropy | s(F) - y | s(F) (1 - s(F)) | s(F), the logistic function |
| focal, of class y | derivative of -(1 - p)^gamma ln p, p that of y | exact, at least p(1 - p)/10 | s(F) |

References: Friedman (2001), Ann. Statist. 29:1189 (absolute, Huber); Koenker & Bassett (1978), Econometrica 46:33;
Jorgensen (1987), J. R. Statist. Soc. B 49:127 (Tweedie); Lin et al. (2017), ICCV (focal).
"""

from typing import NamedTuple, Protocol

import numpy as np
import scipy

from app.ml.contract.algorithm import Vector
from app.ml.numerics.boosting.losses import share
from app.ml.numerics.linear_algebra.solve import near_one
from app.ml.numerics.unit_deviance import unit_deviances

LEAST_SHARE = 1e-9
"""Mean, beside 1, that targets of nothing but 0 are taken to have: its logarithm and log-odds are finite."""
LEAST_FOCAL_CURVATURE = 0.1
"""Beside p (1 - p): the exact curvature of the focal loss is negative where a row is far off."""
MAX_EXPONENT = 500.0
"""Sums beyond it have the slopes that it has: e^F stays finite."""


class ResponseLoss(Protocol):
    """A loss of numbers y (n,) beside sums F (n,)."""

    @property
    def level(self) -> float | None:
        """The quantile of the rests that is the best value of a leaf; None: a Newton step is taken."""

    @property
    def bends(self) -> bool:
        """True if the curvature is not 1."""

    def base(self, y: Vector, weights: Vector, offset: Vector) -> float:
        """The best constant beside an offset (n,)."""

    def unit(self, base: float) -> float:
        """A power of two that brings the slopes near 1."""

    def slopes(self, total: Vector, y: Vector) -> tuple[Vector, Vector | None]:
        """Gradients (n,), and curvatures where they are not 1."""

    def losses(self, total: Vector, y: Vector) -> Vector:
        """(n,)"""

    def response(self, total: Vector) -> Vector:
        """Predictions (n,) of sums."""


class Quantile(NamedTuple):
    level: float
    bends: bool = False

    def base(self, y: Vector, weights: Vector, offset: Vector) -> float:
        return weighted_quantile(y - offset, weights, self.level)

    def unit(self, _base: float) -> float:
        return 1.0

    def slopes(self, total: Vector, y: Vector) -> tuple[Vector, None]:
        return np.where(y < total, 1 - self.level, -self.level), None

    def losses(self, total: Vector, y: Vector) -> Vector:
        residuals = y - total
        return np.maximum(self.level * residuals, (self.level - 1) * residuals)

    def response(self, total: Vector) -> Vector:
        return total


class Absolute(NamedTuple):
    level: float = 0.5
    bends: bool = False

    def base(self, y: Vector, weights: Vector, offset: Vector) -> float:
        return weighted_quantile(y - offset, weights, self.level)

    def unit(self, _base: float) -> float:
        return 1.0

    def slopes(self, total: Vector, y: Vector) -> tuple[Vector, None]:
        return np.sign(total - y), None

    def losses(self, total: Vector, y: Vector) -> Vector:
        return np.abs(total - y)

    def response(self, total: Vector) -> Vector:
        return total


class Huber(NamedTuple):
    delta: float
    level: None = None
    bends: bool = False

    def base(self, y: Vector, weights: Vector, offset: Vector) -> float:
        rests = y - offset
        low, high = float(rests.min()), float(rests.max())

        def slope(constant: float) -> float:
            return float(weights @ np.clip(constant - rests, -self.delta, self.delta))

        return (
            low
            if low == high
            else float(scipy.optimize.brentq(slope, low, high, xtol=1e-15 * max(abs(low), abs(high), 1e-300)))
        )

    def unit(self, _base: float) -> float:
        return near_one(self.delta)

    def slopes(self, total: Vector, y: Vector) -> tuple[Vector, None]:
        return np.clip(total - y, -self.delta, self.delta), None

    def losses(self, total: Vector, y: Vector) -> Vector:
        size = np.abs(total - y)
        near = np.minimum(size, self.delta)
        return near * (size - near / 2)

    def response(self, total: Vector) -> Vector:
        return total


class Tweedie(NamedTuple):
    """Half of the deviance of a variance proportional to mean^power, without what no sum changes."""

    power: float
    level: None = None
    bends: bool = True

    def base(self, y: Vector, weights: Vector, offset: Vector) -> float:
        top = float(offset.max())
        far, power = np.maximum(offset - top, -MAX_EXPONENT), self.power
        mean = float(weights @ (y * np.exp((1 - power) * far))) / float(weights @ np.exp((2 - power) * far))
        return float(np.log(max(mean, LEAST_SHARE if mean == 0 else 0.0))) - top

    def unit(self, base: float) -> float:
        return near_one(float(np.exp(np.clip((2 - self.power) * base, -MAX_EXPONENT, MAX_EXPONENT))))

    def slopes(self, total: Vector, y: Vector) -> tuple[Vector, Vector]:
        total = np.clip(total, -MAX_EXPONENT, MAX_EXPONENT)
        upper, lower = 2 - self.power, 1 - self.power
        up, down = np.exp(upper * total), y * np.exp(lower * total)
        return up - down, upper * up - lower * down

    def losses(self, total: Vector, y: Vector) -> Vector:
        return unit_deviances(y, self.response(total), self.power) / 2

    def response(self, total: Vector) -> Vector:
        return np.exp(np.clip(total, -MAX_EXPONENT, MAX_EXPONENT))


class CrossEntropy(NamedTuple):
    level: None = None
    bends: bool = True

    def base(self, y: Vector, weights: Vector, offset: Vector) -> float:
        mean = min(max(float(np.average(y, weights=weights)), LEAST_SHARE), 1 - LEAST_SHARE)
        middle, low, high = float(np.log(mean / (1 - mean))), float(offset.min()), float(offset.max())

        def slope(constant: float) -> float:
            return float(weights @ (share(constant + offset) - mean))

        return (
            middle - low
            if low == high
            else float(scipy.optimize.brentq(slope, middle - high - 1, middle - low + 1, xtol=1e-14))
        )

    def unit(self, _base: float) -> float:
        return 1.0

    def slopes(self, total: Vector, y: Vector) -> tuple[Vector, Vector]:
        p = share(total)
        return p - y, p * (1 - p)

    def losses(self, total: Vector, y: Vector) -> Vector:
        return np.logaddexp(0, total) - y * total

    def response(self, total: Vector) -> Vector:
        return share(total)


class Focal(NamedTuple):
    """The focal loss of truths y of the second of two classes."""

    gamma: float
    level: None = None
    bends: bool = True

    def base(self, y: Vector, weights: Vector, offset: Vector) -> float:
        middle = CrossEntropy().base(y, weights, offset)
        minimum = scipy.optimize.minimize_scalar(
            lambda constant: float(weights @ self.losses(constant + offset, y)),
            bounds=sorted((0.0, 2 * middle)) if middle else (-1.0, 1.0),
            method="bounded",
            options={"xatol": 1e-12},
        )
        return float(minimum.x)

    def unit(self, _base: float) -> float:
        return 1.0

    def slopes(self, total: Vector, y: Vector) -> tuple[Vector, Vector]:
        side = np.where(y > 0.5, 1.0, -1.0)
        gamma, log_p = self.gamma, -np.logaddexp(0, -side * total)
        p = np.exp(log_p)
        away = -np.expm1(log_p)
        power = away**gamma
        gradient = power * (gamma * p * log_p - away)
        exact = power * p * (away * (1 + 2 * gamma) + gamma * log_p * (away - gamma * p))
        return side * gradient, np.maximum(exact, LEAST_FOCAL_CURVATURE * p * away)

    def losses(self, total: Vector, y: Vector) -> Vector:
        log_p = -np.logaddexp(0, np.where(y > 0.5, -total, total))
        return -((-np.expm1(log_p)) ** self.gamma) * log_p

    def response(self, total: Vector) -> Vector:
        return share(total)


def weighted_quantile(values: Vector, weights: Vector, level: float) -> float:
    """The smallest value below or at which this share of the weights lies: a minimum of the pinball loss."""
    if not weights.size or weights.min() == weights.max():
        place = min(max(int(np.ceil(level * values.size * (1 - 1e-12))) - 1, 0), values.size - 1)
        return float(np.partition(values, place)[place])
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, level * reached[-1] * (1 - 1e-12)))
    return float(values[order[min(place, values.size - 1)]])


def huber_delta(rests: Vector) -> float:
    """The 90 % quantile of the distance of numbers from their median; 1 where most distances are 0."""
    far = np.abs(rests - np.median(rests))
    return float(np.quantile(far, 0.9)) or float(far.max()) or 1.0

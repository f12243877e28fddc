"""Errors and tests of a least squares fit: errors of coefficients, χ², Q, likelihood (LION 5.1, 5.2.1).

Errors are taken as independent and normal, of variance σ²/weight.
"""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from app.ml.contract.algorithm import JSON, Affine, ColumnUnits, Matrix, Vector
from app.ml.contract.named_numbers import every

LARGEST_COVARIANCE = 100
"""Parameters up to which the whole covariance is reported; the errors always are."""


def chi_square_q(chi2: float, freedom: int) -> float:
    """The probability that χ² with `freedom` degrees of freedom is at least chi2 (LION 5.2.1)."""
    return float(scipy.special.gammaincc(freedom / 2, chi2 / 2))


def as_json(values: ArrayLike) -> JSON:
    """The values as JSON; a number that is not finite is null."""
    array = np.asarray(values, np.float64)
    cells = array.astype(object)
    cells[~np.isfinite(array)] = None
    return cells.tolist()


def form(coef: NDArray[np.float64], intercept: NDArray[np.float64], units: Affine | None = None) -> dict[str, JSON]:
    """A linear form as JSON. coef: (d,) or (d, k); intercept: () or (k,). units: for other columns."""
    if units is not None:
        coef, intercept = units.coef(coef), intercept + units.constant(coef)
    classes: dict[str, JSON] = {"classes": every(coef.shape[1])} if coef.ndim == 2 else {}
    return {"columns": every(len(coef)), **classes, "coefficients": as_json(coef.T), "intercept": as_json(intercept)}


def forms(coef: Matrix, intercepts: Vector, units: Affine | ColumnUnits | None = None) -> dict[str, JSON]:
    """Several linear forms as JSON. coef: (s, d); intercepts: (s,). units: for other columns."""
    if units is not None:
        coef, intercepts = units.coef(coef.T).T, intercepts + units.constant(coef.T)
    return {"columns": every(coef.shape[1]), "coefficients": as_json(coef), "intercepts": as_json(intercepts)}


class Inference(NamedTuple):
    coef: Vector
    """(d,)."""
    intercept: float | None
    factor: Matrix
    """(d, r): FFᵀ is the covariance of `coef` for noise of variance 1/weight."""
    mean: Vector
    """(d,) of the inputs."""
    weight: float
    """Sum of weights."""
    log_weight: float
    """Sum of their logarithms."""
    square: float
    """Weighted sum of squared residuals."""
    rows: int
    sigma: float | None
    """Noise of a row of weight 1, or None if only the residuals show it."""

    @property
    def freedom(self) -> int:
        """Rows less the parameters that the rows determine."""
        return int(self.rows - self.factor.shape[1] - (self.intercept is not None))

    @property
    def noise(self) -> float:
        """Standard deviation of a row of weight 1; NaN where nothing determines it."""
        if self.sigma is not None:
            return self.sigma
        return float(np.sqrt(self.square / self.freedom)) if self.freedom > 0 else float("nan")

    def reach(self, centred: Matrix, confidence: float, own_term: float = 0.0) -> Vector:
        """Half the width of the interval of the prediction at inputs less their mean (n, d); infinite if unknown.

        own: the share of a row's own noise variance in it: 0 for the mean, 1 for a new row of weight 1.
        """
        tail = (1 + confidence) / 2
        if not np.isfinite(self.noise):
            return np.full(len(centred), np.inf)
        factor = scipy.special.ndtri(tail) if self.sigma is not None else scipy.special.stdtrit(self.freedom, tail)
        level = 0.0 if self.intercept is None else 1 / self.weight
        return np.asarray(factor * self.noise * np.sqrt(own_term + level + ((centred @ self.factor) ** 2).sum(axis=1)))

    def parameters(self, units: Affine | None = None) -> tuple[Vector, Matrix]:
        """Intercept and coefficients (1 + d,), and R (1 + d, r): RRᵀ is their covariance for noise of size 1/weight.

        units: of other columns, from which those of the fit are made.
        """
        values = np.append(self.intercept or 0.0, self.coef)
        rows = np.pad(self.factor, ((0, 0), (0, 1)))
        first = np.zeros(rows.shape[1])
        if self.intercept is not None:
            first = np.append(-self.mean @ self.factor, 1 / np.sqrt(self.weight))
        if units is not None:
            values = np.append(values[0] + units.constant(self.coef), units.coef(self.coef))
            first, rows = first + units.constant(rows), units.coef(rows)
        return values, np.vstack([first, rows])

    def errors(self, units: Affine | None = None) -> Vector:
        """Standard errors of the intercept, NaN if there is none, and the coefficients: (1 + d,)."""
        errors = self.noise * np.sqrt((self.parameters(units)[1] ** 2).sum(axis=1))
        errors[0] = errors[0] if self._shifted(units) else np.nan
        return np.asarray(errors)

    def _shifted(self, units: Affine | None) -> bool:
        """True if there is an intercept, if only by shifting the columns of other coefficients."""
        return self.intercept is not None or (units is not None and bool(units.shift.any()))

    def p_values(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Two-sided; Student's t where the noise is estimated, else normal."""
        special, low = scipy.special, -np.abs(t)
        below = special.ndtr(low) if self.sigma is not None else special.stdtr(max(self.freedom, 1), low)
        return np.asarray(2 * below)

    def log_likelihood(self) -> float:
        """Given the noise, or for the noise that makes it largest, χ²/N; NaN for a perfect fit of unknown noise."""
        variance = self.square / self.rows if self.sigma is None else self.sigma**2
        if variance == 0:
            return float("nan")
        return float(-(self.square / variance + self.rows * np.log(2 * np.pi * variance) - self.log_weight) / 2)

    def summary(self, units: Affine | None = None) -> JSON:
        """units: as in `parameters`. An intercept that is nowhere has no error."""
        values, root = self.parameters(units)
        errors = self.errors(units)
        t = np.divide(values, errors, out=np.full(len(errors), np.nan), where=errors > 0)
        p = self.p_values(t)
        chi2 = self.square / (self.sigma or 1.0) ** 2
        plausible = self.sigma is not None and self.freedom > 0
        root_of_columns = root if self._shifted(units) else root[1:]
        return {
            "standard_errors": as_json(errors[1:]),
            "t_values": as_json(t[1:]),
            "p_values": as_json(p[1:]),
            "intercept_standard_error": as_json(errors[0]),
            "intercept_t_value": as_json(t[0]),
            "intercept_p_value": as_json(p[0]),
            "covariance": as_json(self.noise**2 * (root_of_columns @ root_of_columns.T))
            if len(errors) <= LARGEST_COVARIANCE
            else None,
            "residual_standard_deviation": as_json(np.sqrt(self.square / self.freedom)) if self.freedom > 0 else None,
            "degrees_of_freedom": self.freedom,
            "chi2": as_json(chi2),
            "reduced_chi2": as_json(chi2 / self.freedom) if self.freedom > 0 else None,
            "q": chi_square_q(chi2, self.freedom) if plausible else None,
            "log_likelihood": as_json(self.log_likelihood()),
        }

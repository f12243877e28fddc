r"""Calibration of class probabilities: one ascending map for each class, fitted to rows that the model has not seen.

Of two classes the second has a map f, and the probabilities are 1 − f(p) and f(p). Of more, each class has one against
all others, and the results are divided by their sum. Where every map gives 0, the probabilities of the model remain.
`sigmoid` is Platt's, of the log odds of p, with p held between 10⁻⁶ and 1 − 10⁻⁶; `isotonic` is a function of p.

References: Zadrozny & Elkan (2002), KDD: 694; Niculescu-Mizil & Caruana (2005), ICML: 625.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.class_probabilities.isotonic import isotonic
from app.ml.numerics.class_probabilities.sigmoid import sigmoid

Method: TypeAlias = Literal["sigmoid", "isotonic"]
MIN_PROBABILITY = 1e-6
"""Probabilities nearer to 0 or 1 than this have no larger log odds: of few votes, 0 is not certainty."""


class Calibrator(NamedTuple):
    """Maps of m classes: the second where there are two, else all."""

    coef: Matrix
    """(m, 2) slope and intercept of sigmoids; (0, 2) of isotonic maps."""
    knots: Matrix
    """(j, 2) probability and value, the knots of one map after those of the other; (0, 2) of sigmoids."""
    ends: Labels
    """(m,) the place behind the last knot of each map; (0,) of sigmoids."""

    @classmethod
    def of(cls, method: Method, probabilities: Matrix, codes: Labels, weights: Vector | None = None) -> "Calibrator":
        """Fitted to probabilities (n, k) of rows, their classes (n,) and weights (n,); None: all count the same."""
        none, counts = np.zeros((0, 2)), np.ones(codes.size) if weights is None else weights
        pairs = [(probabilities[:, j], (codes == j) * 1.0) for j in mapped(probabilities.shape[1])]
        if method == "sigmoid":
            coef = np.stack([sigmoid(log_odds(p), of_class, counts) for p, of_class in pairs])
            return cls(coef, none, np.zeros(0, np.intp))
        tables = [isotonic(p, of_class, counts) for p, of_class in pairs]
        return cls(none, np.concatenate(tables), np.cumsum([len(table) for table in tables]))

    def maps(self) -> list[Callable[[Vector], Vector]]:
        """The map of each class."""
        if len(self.coef):
            return [_sigmoid(slope, intercept) for slope, intercept in self.coef.tolist()]
        return [_interpolation(part) for part in np.split(self.knots, self.ends[:-1])]

    def is_sound(self, classes: int) -> bool:
        """True if there is a map for each class that needs one, and every map is one."""
        whole = self.coef.dtype == self.knots.dtype == np.float64 and self.ends.dtype == np.intp
        if not whole or {self.coef.shape[1:], self.knots.shape[1:]} != {(2,)} or self.ends.ndim != 1:
            return False
        if not np.isfinite(self.coef).all() or not ((self.knots >= 0) & (self.knots <= 1)).all():
            return False
        expected, sizes = len(mapped(classes)), np.diff(self.ends, prepend=0)
        if len(self.coef):
            return len(self.coef) == expected and not self.ends.size and not self.knots.size
        if self.ends.size != expected or (sizes < 1).any() or self.ends[-1] != len(self.knots):
            return False
        steps = [np.diff(part, axis=0) for part in np.split(self.knots, self.ends[:-1])]
        return all((step[:, 0] > 0).all() and (step[:, 1] >= 0).all() for step in steps)


def mapped(classes: int) -> range:
    """Codes of the classes with a map."""
    return range(1, 2) if classes == 2 else range(classes)


def calibrated(calibrator: Calibrator, probabilities: Matrix) -> Matrix:
    """(n, k) from (n, k); each row by itself, with the same bits among any other rows."""
    maps = calibrator.maps()
    if probabilities.shape[1] == 2:
        second = maps[0](probabilities[:, 1])
        return np.column_stack([1 - second, second])
    columns = [isotonic_map(np.ascontiguousarray(p)) for isotonic_map, p in zip(maps, probabilities.T, strict=True)]
    total = np.zeros(len(probabilities))
    for column in columns:
        total += column
    there = total > 0
    share = np.column_stack([column / np.where(there, total, 1.0) for column in columns])
    return np.where(there[:, None], share, probabilities)


def log_odds(p: Vector) -> Vector:
    held = np.clip(p, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    result: Vector = np.log(held) - np.log1p(-held)
    return result


def _sigmoid(slope: float, intercept: float) -> Callable[[Vector], Vector]:
    return lambda p: np.asarray(scipy.special.expit(slope * log_odds(p) + intercept))


def _interpolation(knots: Matrix) -> Callable[[Vector], Vector]:
    x, y = np.ascontiguousarray(knots.T)
    return lambda p: np.interp(p, x, y)

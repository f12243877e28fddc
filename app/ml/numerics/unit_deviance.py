"""Unit deviances of Poisson, gamma and Tweedie distributions.

References: Jorgensen (1987), J. R. Statist. Soc. B 49:127.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Vector


def unit_deviances(y: Vector, mean: Vector, power: float) -> Vector:
    """(n,) of a variance proportional to mean^power: 1 is Poisson, 2 is gamma; between, Tweedie. NaN or infinite where
    a target has none.

    >>> unit_deviances(np.array([0.0, 1.0, 3.0]), np.ones(3), 1.0).round(4).tolist()
    [2.0, 0.0, 2.5917]
    """
    with np.errstate(all="ignore"):
        if power == 1:
            return np.asarray(2 * (scipy.special.xlogy(y, y / mean) - y + mean))
        if power == 2:
            return np.asarray(2 * (y / mean - 1 - np.log(y / mean)))
        first_exponent, two = 1 - power, 2 - power
        return np.asarray(
            2 * (y**two / (first_exponent * two) - y * mean**first_exponent / first_exponent + mean**two / two)
        )

r"""Betting on the mean of bounded values: a test that may be looked at after every value.

A gambler bets a share λ of the wealth W on each value x in [-1, 1], whose mean is at most 0 under the hypothesis:

    W_t = Π (1 + λ_i x_i),   λ_i = S_{i-1} / (V_{i-1} + 1/4) within [0, 1/2],

with S the sum and V the sum of squares of the values before. Under the hypothesis the wealth is a supermartingale that
starts at 1, so that it ever reaches 1/α with probability at most α, whenever somebody looks (Ville's inequality).

References: Waudby-Smith & Ramdas (2024), J. R. Statist. Soc. B 86:1; Ville (1939), Étude critique de la notion de
collectif.
"""

import numpy as np

from app.ml.contract.algorithm import Vector

MAX_SHARE = 0.5
CLIPPED_QUANTILE = 0.99
"""Quantile of the sizes of the first block at which all values are cut off."""


def log_wealth(values: Vector, first: int) -> Vector:
    """Logarithm of the wealth after each value but the first block's, (n - first,).

    values: (n,) in the order in which they were seen. first: values of the first block, at least one, which sets the
    scale and the first share and does not bet.

    >>> log_wealth(np.array([1.0, 1.0, 1.0, -1.0]), 2).round(4).tolist()
    [0.4055, -0.2877]
    """
    scale = float(np.quantile(np.abs(values[:first]), CLIPPED_QUANTILE))
    if not scale > 0:
        scale = float(np.abs(values).max(initial=0.0)) or 1.0
    scaled = np.clip(values / scale, -1.0, 1.0)
    before, squares = np.cumsum(scaled)[first - 1 : -1], np.cumsum(scaled**2)[first - 1 : -1]
    shares = np.clip(before / (squares + 0.25), 0.0, MAX_SHARE)
    return np.cumsum(np.log1p(shares * scaled[first:]))


def is_surely_above_zero(values: Vector, first: int, alpha: float) -> bool:
    """True if the mean of the values is above 0 by this test; false where no value is left to bet on."""
    if first < 1 or values.size <= first:
        return False
    return bool(log_wealth(values, first).max() >= -np.log(alpha))

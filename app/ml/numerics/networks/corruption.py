"""Corruption of rows from which a denoising autoencoder restores the clean ones.

Reference: Vincent et al. (2010), J. Mach. Learn. Res. 11:3371; Battiti & Brunato, The LION Way, section 9.3.2.
"""

from typing import Literal, NamedTuple

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.numerics.networks.back_propagation import Reals


class Corruption(NamedTuple):
    kind: Literal["gaussian", "masking", "flipping"]
    level: float
    """Standard deviation of the noise, or share of the values that are changed."""
    mirror: Vector
    """(d,) sum of the least and the largest value of each column: what a flipped value is subtracted from."""

    def of(self, x: Reals, rng: np.random.Generator) -> Reals:
        """Corrupted copies of rows (n, d) of 32 bits."""
        if self.kind == "gaussian":
            return np.asarray(x + np.float32(self.level) * rng.standard_normal(x.shape, np.float32))
        changed = rng.random(x.shape, np.float32) < self.level
        other = 0.0 if self.kind == "masking" else self.mirror.astype(x.dtype) - x
        return np.where(changed, np.asarray(other, x.dtype), x)

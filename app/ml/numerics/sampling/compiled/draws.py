"""Random numbers inside kernels, the same on every machine and with every version of numba.

Reference: Steele, Lea & Flood (2014), OOPSLA: 453 (SplitMix64).
"""

import numpy as np

from app.ml.numerics.jit import inner


@inner
def word(state):
    """The next 64 random bits; `state` (1,) uint64 moves on."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def below(limit, state):
    """A whole number from 0 to limit - 1, for limits below 2³²: each as likely as the other within 2⁻³²."""
    return np.int64(((word(state) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))

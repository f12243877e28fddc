"""Codes of values."""

import numpy as np

from app.ml.numerics.jit import kernel

BLOCK = 256
"""Rows looked up at a time: x is read once, and their searches do not wait for each other."""


@kernel(
    "void(f8[:,::1], f8[:,::1], i8, i8[::1], u1[:,:])",
    "void(f8[:,::1], f8[:,::1], i8, i8[::1], i4[:,:])",
    writes=["codes"],
)
def encode(x, edges, step, bins, codes):
    """Codes (d, n) of the rows x (n, d): how many edges of its column each value is beyond."""
    n, d = x.shape
    values, places = np.empty(BLOCK), np.empty(BLOCK, np.uintp)
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        for j in range(d):
            row, out = edges[j], codes[j, first : first + m]
            for p in range(m):
                values[np.uintp(p)], places[np.uintp(p)] = x[np.uintp(first + p), np.uintp(j)], 0
            half = np.uintp(step)
            while half:
                for p in range(m):
                    i = np.uintp(p)
                    beyond = row[places[i] + half - np.uintp(1)] < values[i]
                    places[i] += np.uintp(beyond) * half
                half >>= np.uintp(1)
            for p in range(m):
                i = np.uintp(p)
                out[i] = bins[j] if np.isnan(values[i]) else places[i]

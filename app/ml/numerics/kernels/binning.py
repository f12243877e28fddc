"""Codes of values."""

import numpy as np

from app.ml.numerics.compiled import kernel


@kernel(
    "void(f8[:,::1], f8[:,::1], i8, i8[::1], u1[:,::1])",
    "void(f8[:,::1], f8[:,::1], i8, i8[::1], i4[:,::1])",
    writes=["codes"],
)
def encode(x, edges, step, bins, codes):
    """Codes (d, n) of the rows x (n, d): how many edges of its column each value is beyond."""
    n, d = x.shape
    for first in range(0, n, 256):  # a block of rows at a time, so that x is read once
        rows = x[first : first + 256]
        for j in range(d):
            row, out = edges[j], codes[j, first : first + 256]
            for i in range(rows.shape[0]):
                value = rows[i, j]
                if np.isnan(value):
                    out[i] = bins[j]
                else:
                    place, half = 0, step
                    while half:
                        place += half if row[place + half - 1] < value else 0
                        half >>= 1
                    out[i] = place

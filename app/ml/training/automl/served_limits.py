"""Promises of a served model: its size, and the time of one row by the stored bytes."""

import time

import numpy as np

from app.ml.kinds.job import Trained
from app.ml.models.golden import golden_table
from app.ml.models.model import decode

PREDICTIONS, MAX_SECONDS = 2_000, 2.0
"""Predictions of single rows that the 99th percentile is of, and the time after which fewer have to do."""
MIN_PREDICTIONS = 100


def broken_promise(trained: Trained, size_bytes: int | None, microseconds: float | None) -> str | None:
    """Sentence on the promise that the stored model breaks; None: it keeps them."""
    if size_bytes is not None and len(trained.blob) > size_bytes:
        return f"its model takes {len(trained.blob)} bytes, and the limit is {size_bytes}."
    if microseconds is not None and (slow := slow_microseconds(trained)) > microseconds:
        return f"99 of 100 rows take up to {slow:.3g} µs, and the limit is {microseconds:g}."
    return None


def slow_microseconds(trained: Trained) -> float:
    """The 99th percentile of the microseconds that the stored model takes for a single row."""
    model = decode(trained.blob)
    table = golden_table(model, trained.golden)
    rows = table if isinstance(table, np.ndarray) else model.preparation.raw(table)
    times = []
    begun = time.perf_counter()
    for place in range(PREDICTIONS + 10):
        row = rows[place % len(rows)][None]
        before = time.perf_counter()
        model.predict(row)
        times.append(time.perf_counter() - before)
        if place >= MIN_PREDICTIONS and times[-1] + before - begun > MAX_SECONDS:
            break
    return 1e6 * float(np.quantile(times[10:], 0.99))

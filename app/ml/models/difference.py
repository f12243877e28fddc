"""Differences between a stored model and bytes that should be the same."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.base.faults import Fault, place
from app.ml.contract.algorithm import JSON
from app.ml.models import safetensors_format
from app.ml.models.model import Model, encode

NAMED = 100
"""Differences that are named."""


def differences(model: Model, blob: bytes) -> list[Fault]:
    """The first differences, each with its place: of the receipt and the other fields first, then of the arrays."""
    (before, stored), (after, again) = safetensors_format.read(encode(model)), safetensors_format.read(blob)
    return [*islice(_all(before, after, stored, again), NAMED)]


def _all(
    before: JSON, after: JSON, stored: safetensors_format.Arrays, again: safetensors_format.Arrays
) -> Iterator[Fault]:
    yield from _fields(before, after)
    for name in sorted({*stored, *again}):
        if name not in stored or name not in again:
            yield Fault(place("arrays", name), "Only one of the two models has this array.", "array_differs")
        elif detail := _numbers(stored[name], again[name]):
            yield Fault(place("arrays", name), detail, "array_differs")


def _fields(before: JSON, after: JSON, *path: object) -> Iterator[Fault]:
    """Differences of two documents: of an object by its fields, else of the whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            yield from _fields(before.get(name), after.get(name), *path, name)
    elif before != after:
        versions = f": {before} when it was made, {after} now" if path[:2] == ("receipt", "libraries") else ""
        yield Fault(place(*path), f"The two models differ here{versions}.", "field_differs")


def _numbers(stored: NDArray[Any], again: NDArray[Any]) -> str:
    """Description of the difference of two arrays, bit by bit; empty where there is none."""
    if stored.dtype != again.dtype or stored.shape != again.shape:
        return f"{stored.dtype}{list(stored.shape)} when it was made, {again.dtype}{list(again.shape)} now."
    if stored.tobytes() == again.tobytes():
        return ""
    if stored.dtype.kind != "f":
        return f"{np.count_nonzero(stored != again)} of {stored.size} values differ."
    alike = (stored == again) | (np.isnan(stored) & np.isnan(again))
    with np.errstate(invalid="ignore"):
        gap = np.abs(np.asarray(stored, np.float64) - again)[~alike]
    largest = np.max(np.abs(stored), where=np.isfinite(stored), initial=0.0)
    worst = np.max(gap, where=np.isfinite(gap), initial=0.0)
    size = f", by at most {worst / largest:.1e} of the largest" if largest and worst else ""
    return f"{gap.size} of {stored.size} numbers differ{size}."

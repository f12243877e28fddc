"""Monitor curves of bounded length."""

import math
from collections.abc import Mapping


class Curves:
    """Keeps at most `limit` evenly spaced points of each measure: when full, every other one goes."""

    def __init__(self, limit: int = 1000) -> None:
        self._limit = limit
        self._points: dict[str, list[float]] = {}
        self._seen: dict[str, int] = {}
        self._stride: dict[str, int] = {}

    def add(self, measures: Mapping[str, float]) -> None:
        """A point of each; what is not finite has no place in JSON and is left out."""
        for name, value in measures.items():
            if math.isfinite(value):
                self._append(name, float(value))

    def _append(self, name: str, value: float) -> None:
        points = self._points.setdefault(name, [])
        seen, stride = self._seen.get(name, 0), self._stride.get(name, 1)
        self._seen[name] = seen + 1
        if seen % stride:
            return
        points.append(value)
        if len(points) > self._limit:
            del points[1::2]
            self._stride[name] = 2 * stride

    @property
    def values(self) -> dict[str, list[float]]:
        return self._points

"""Curves of an iterative minimisation: the loss, and the share of it that it can be too high by."""

import math

from app.ml.contract.algorithm import Progress


class LossCurves:
    """Is called with the loss of every iteration, keeps it and reports the progress."""

    def __init__(self, progress: Progress, max_iter: int) -> None:
        self.values: dict[str, list[float]] = {"loss": []}
        self._progress, self._max_iter = progress, max_iter

    def __call__(self, value: float, gap: float | None = None) -> None:
        """gap: the most that the loss is above its minimum, where that is known."""
        if not math.isfinite(value):
            return
        measures = {"loss": value} | ({} if gap is None else {"duality_gap": gap / value if value > 0 else 0.0})
        for name, measure in measures.items():
            self.values.setdefault(name, []).append(measure)
        self._progress(min(len(self.values["loss"]) / self._max_iter, 1.0), **measures)

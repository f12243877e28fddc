"""Time that a search may take: what is left, and what the next fit would take of it.

The seconds of a fit are predicted from the estimate of its algorithm and from how true the estimates of its family
were on this machine so far.
"""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable

import numpy as np

RECENT = 10
"""Fits that a prediction rests on."""
CAUTION, FIRST_CAUTION = 1.6, 3.0
"""Factor above the median of a family, and of a family that was never fitted."""
PUBLISH_SECONDS = 0.5
"""Time kept for storing a model and the end of the process."""
MIN_OVERHEAD_SECONDS = 0.3
"""Time of a final fit beside the fit itself, until one was measured: evaluation, intervals, encoding."""


class TimeBudget:
    def __init__(
        self, seconds: float | None, *, spent: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """seconds: None for a budget of units, which no clock ends. spent: by earlier attempts at the job."""
        self._clock = clock
        self._begun = clock() - spent
        self.seconds = math.inf if seconds is None else seconds
        self._ratios: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))
        self._all_ratios: deque[float] = deque(maxlen=RECENT)
        self._overhead: float | None = None
        self.checkpoint_seconds = 0.0

    @property
    def spent(self) -> float:
        return self._clock() - self._begun

    @property
    def left(self) -> float:
        """Seconds until the result has to be handed over."""
        return self.seconds - self.spent - PUBLISH_SECONDS

    @property
    def share(self) -> float:
        """The share of the seconds that is spent."""
        return self.spent / self.seconds

    def predict(self, family: str, estimate: float) -> float:
        """Seconds of a fit that its algorithm estimates so."""
        if ratios := self._ratios[family]:
            return estimate * CAUTION * float(np.median(ratios))
        typical = max(1.0, float(np.median(self._all_ratios))) if self._all_ratios else 1.0
        return estimate * FIRST_CAUTION * typical

    def observe(self, family: str, estimate: float, seconds: float) -> None:
        """A fit took so long."""
        ratio = seconds / max(estimate, 1e-6)
        self._ratios[family].append(ratio)
        self._all_ratios.append(ratio)

    def predict_final(self, family: str, estimate: float) -> float:
        """Seconds of a final fit, with its evaluation and its bytes."""
        overhead = 3 * MIN_OVERHEAD_SECONDS if self._overhead is None else CAUTION * self._overhead
        return self.predict(family, estimate) + overhead

    def observe_final(self, family: str, estimate: float, seconds: float) -> None:
        """A final fit took so long."""
        fit_seconds = self.predict(family, estimate) / CAUTION
        self._overhead = max(MIN_OVERHEAD_SECONDS, seconds - fit_seconds)

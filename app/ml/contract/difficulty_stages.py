"""Curriculum learning: rows are learned in stages, the easiest first, each stage with all easier rows (LION 9.3.2).

Of n rows and K stages, stage k has the ⌈kn/K⌉ easiest rows, so that the last one has all of them and a single stage is
a fit as ever. Rows that are equally difficult come in their own order.

Reference: Bengio, Louradour, Collobert & Weston (2009), ICML 26:41.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Curriculum(NamedTuple):
    difficulty: NDArray[np.float64]
    """(n,) of the rows: larger is harder."""
    parts: int
    """Stages."""

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "Curriculum":
        """Curriculum of these rows."""
        return self._replace(difficulty=self.difficulty[rows])

    def stages(self) -> list[NDArray[np.intp]]:
        """Rows of each stage, ascending.

        >>> [stage.tolist() for stage in Curriculum(np.array([0.3, 0.1, 0.2]), 2).stages()]
        [[1, 2], [0, 1, 2]]
        """
        n, order = self.difficulty.size, np.argsort(self.difficulty, kind="stable")
        return [np.sort(order[: -(-stage * n // self.parts)]) for stage in range(1, self.parts + 1)]

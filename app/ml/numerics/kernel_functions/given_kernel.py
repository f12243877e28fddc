"""A kernel whose values are given: rows (n, 1) and (m, 1) are places in a table of all of them."""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector


def places(count: int) -> Matrix:
    """(count, 1) places of all rows of a table."""
    return np.arange(float(count))[:, None]


class Given(NamedTuple):
    """Values of a table (p, q): p on the left, q on the right."""

    table: Matrix

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) values of the places on the left (n, 1) beside those on the right (m, 1)."""
        rows, columns = left[:, 0].astype(np.intp), right[:, 0].astype(np.intp)
        return self.table[np.ix_(rows, columns)]

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) values of places in a square table beside themselves."""
        places = rows[:, 0].astype(np.intp)
        return self.table[places, places]

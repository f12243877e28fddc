"""Rows of a raw matrix become rows of the matrix: functions, scaled and imputed numbers, indicators, encodings."""

from dataclasses import dataclass

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.sparse_rows import SparseRows, beside
from app.ml.numerics.scaling import MAX_MULTIPLIABLE
from app.ml.preparation.arrow_columns import UNSEEN
from app.ml.preparation.imputation import filled
from app.ml.preparation.layout import Layout
from app.ml.preparation.scaling import Scaling


@dataclass(frozen=True, slots=True)
class MatrixWriter:
    layout: Layout
    scaling: Scaling
    keeps_missing: bool
    """True if missing values stay missing, as in `Preparation`."""
    fills: Vector | None
    """Values that replace missing ones, as in `Preparation`."""

    def write(self, raw: Matrix, x: Matrix, *, seen: bool = False) -> None:
        """The matrix of `raw` into `x`, which holds zeros where there are indicators."""
        layout, raw = self.layout, filled(raw, self.fills)
        direct, width = layout.direct, layout.plain_width
        wide = layout.basis.wide(raw)
        used = wide if direct.size == wide.shape[1] else wide[:, direct]
        if layout.encodings:
            x[:, width:] = np.hstack([encoding.of(raw[:, encoding.place]) for encoding in layout.encodings])
        if layout.keeps_categories:
            plain = x[:, :width]
            plain[...] = used
            plain[(plain == UNSEEN) & (layout.levels[:width] > 0)] = np.nan
            return
        self._scale(used, x[:, : direct.size], seen=seen)
        if layout.indicated.size:
            self._indicate(raw, x)

    def sparse_rows(self, raw: Matrix) -> SparseRows:
        """The matrix of `raw` as sparse rows, where no input is encoded by the target."""
        layout, raw = self.layout, filled(raw, self.fills)
        numbers = np.empty((len(raw), layout.direct.size))
        self._scale(layout.basis.wide(raw)[:, layout.direct], numbers, seen=False)
        rows, columns = self._indicators(raw)
        shape = len(raw), layout.plain_width - layout.direct.size
        return beside(numbers, [SparseRows.of(np.ones(rows.size), rows, columns - layout.direct.size, shape)])

    def _scale(self, values: Matrix, numbers: Matrix, *, seen: bool) -> None:
        """These values, shifted and scaled, into `numbers`; missing ones are imputed."""
        with np.errstate(over="ignore"):
            np.subtract(values, self.scaling.offset, out=numbers)
            numbers /= self.scaling.scale
        if not seen:
            if not self.keeps_missing:
                np.copyto(numbers, self.scaling.filled, where=np.isnan(numbers))
            near(numbers)

    def _indicate(self, raw: Matrix, x: Matrix) -> None:
        """Ones where the indicators of the levels of `raw` stand in `x`."""
        x[self._indicators(raw)] = 1.0

    def _indicators(self, raw: Matrix) -> tuple[Labels, Labels]:
        """Rows and columns of the ones in the matrix of `raw`."""
        places = self.layout.indicated
        levels = raw[:, places]
        np.copyto(levels, self.layout.codes.of_missing[places], where=np.isnan(levels))
        rows, columns = np.nonzero(levels != UNSEEN)
        return rows, self.layout.starts[columns] + levels[rows, columns].astype(np.intp)


def near(numbers: Matrix) -> Matrix:
    """The same array, its numbers at most so large that they can be computed with."""
    return np.clip(numbers, -MAX_MULTIPLIABLE, MAX_MULTIPLIABLE, out=numbers)

"""Codes of the levels of categorical inputs: of those kept, of all others together, and of missing values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Labels, Vector
from app.ml.contract.columns import InputColumn
from app.ml.preparation.arrow_columns import UNSEEN
from app.ml.preparation.state import Truths


@dataclass(frozen=True)
class LevelCodes:
    """Arrays have an entry for each of the p inputs, neutral where it is not categorical."""

    inputs: tuple[InputColumn, ...]
    other: Truths
    """(p,) whether there is a level for everything rare."""
    missing: Truths
    """(p,) whether there is a level for missing values."""

    @cached_property
    def categorical(self) -> Truths:
        return np.array([column.levels is not None for column in self.inputs], np.bool_)

    @cached_property
    def vocabularies(self) -> tuple[pa.Array | None, ...]:
        """The kept levels by code; None for measured inputs."""
        return tuple(None if c.levels is None else pa.array(c.levels, pa.string()) for c in self.inputs)

    @cached_property
    def counts(self) -> Labels:
        """(p,) codes of values that are not missing."""
        return self._kept + self.other

    @cached_property
    def absent(self) -> Vector:
        """(p,) the code of a value that is not a kept level; a NaN, equal to nothing, for measured inputs."""
        return np.where(self.categorical, np.where(self.other, self._kept, UNSEEN), np.nan)

    @cached_property
    def of_missing(self) -> Vector:
        """(p,) the code of a missing value."""
        return np.where(self.missing, self.counts, UNSEEN)

    @cached_property
    def _kept(self) -> Labels:
        return np.array([len(column.levels or ()) for column in self.inputs], np.intp)

    def names(self, place: int) -> list[str]:
        """The name of each code of an input."""
        extra = (("(other)", self.other), ("(missing)", self.missing))
        return [*(self.inputs[place].levels or ()), *(name for name, has in extra if has[place])]

    def filling(self, fills: Mapping[str, float | str]) -> Vector | None:
        """(p,) what stands for a missing value in the raw matrix, NaN of inputs without; None: no input has any."""
        if not fills:
            return None
        filling = np.full(len(self.inputs), np.nan)
        for place, column in enumerate(self.inputs):
            fill = fills.get(column.name, np.nan)
            filling[place] = self.of(place, [fill])[0] if isinstance(fill, str) else fill
        return filling

    def of(self, place: int, levels: Sequence[str]) -> Vector:
        """The code that each of these values of a categorical input has, and that of any other value."""
        code_of = {level: float(code) for code, level in enumerate(self.inputs[place].levels or ())}
        other = float(self.absent[place])
        return np.array([*(code_of.get(level, other) for level in levels), other])

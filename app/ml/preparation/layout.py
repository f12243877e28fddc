"""The columns of the matrix that a preparation makes: which there are, their order, names and numbers of levels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.ml.contract.algorithm import Labels
from app.ml.contract.columns import ColumnKind
from app.ml.preparation.date_parts import DateParts
from app.ml.preparation.functions import Basis, Powers
from app.ml.preparation.level_codes import LevelCodes
from app.ml.preparation.state import Truths
from app.ml.preparation.target_encoding import Encoding


@dataclass(frozen=True)
class Layout:
    """The wide matrix (n, p + f) has the inputs, then the functions of them; the matrix (n, d) is made of it."""

    codes: LevelCodes
    basis: Basis
    encodings: tuple[Encoding, ...]
    keeps_categories: bool
    keeps_inputs: bool
    """True if the inputs stay as columns, as in `Preparation`."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """(d,) names of the matrix's columns: "age", "log(age)", "plan=pro", "plan=(missing)"."""
        return self._named([*self.basis.inputs, *self.basis.names])

    @cached_property
    def plain_names(self) -> tuple[str, ...]:
        """Names of the columns z of `Scaling.affine`: powers are those of the inputs themselves."""
        return self._named(self.basis.plain_names)

    def _named(self, wide: Sequence[str]) -> tuple[str, ...]:
        names = [wide[place] for place in self.direct]
        if not self.keeps_categories:
            for place in self.indicated:
                names += [f"{self.basis.inputs[place]}={level}" for level in self.codes.names(place)]
        encoded = [
            f"{self.basis.inputs[encoding.place]}{suffix}"
            for encoding in self.encodings
            for suffix in encoding.suffixes
        ]
        return (*names, *encoded)

    @cached_property
    def width(self) -> int:
        """d, the number of columns of the matrix."""
        return self.plain_width + sum(len(encoding.suffixes) for encoding in self.encodings)

    @cached_property
    def plain_width(self) -> int:
        """Columns of the matrix before the encoded ones."""
        return self.direct.size + (0 if self.keeps_categories else int(self._sizes.sum()))

    @cached_property
    def levels(self) -> Labels:
        """(d,) the number of level codes of each column of the matrix, 0 for numbers; for `Data.levels`."""
        levels = np.zeros(self.width, np.intp)
        if self.keeps_categories:
            level_counts = np.where(self.codes.categorical, np.maximum(self.codes.counts, 1), 0)
            levels[: self.plain_width] = np.append(level_counts, np.zeros(self.basis.width, np.intp))[self.direct]
        return levels

    @cached_property
    def direct(self) -> Labels:
        """Columns of the wide matrix that are columns of the matrix, its first; codes too, if it keeps categories."""
        if self.keeps_categories:
            return np.flatnonzero(self._used)
        measured = np.append(~self.codes.categorical, np.ones(self.basis.width, np.bool_))
        return np.flatnonzero(measured & self._used)

    @cached_property
    def sources(self) -> Labels:
        """(d,) the input that each column of the matrix is made of; -1 for a function of several inputs."""
        made = [
            np.full(
                len(function.names),
                self.basis.inputs.index(function.date) if isinstance(function, DateParts) else -1,
                np.intp,
            )
            for function in self.basis.functions
        ]
        wide = np.concatenate([np.arange(len(self.basis.inputs)), *made])
        levels = [] if self.keeps_categories else [np.repeat(self.indicated, self._sizes)]
        encoded = [np.full(len(encoding.suffixes), encoding.place, np.intp) for encoding in self.encodings]
        return np.concatenate([wide[self.direct], *levels, *encoded])

    @cached_property
    def categories(self) -> Labels:
        """(d,) the input whose categories a column indicates, or that is true or false itself; -1 for others."""
        flags = np.array([column.kind == ColumnKind.BOOLEAN for column in self.codes.inputs], np.bool_)
        plain, result = np.arange(self.width) < self.direct.size, self.sources.copy()
        result[plain & ~np.append(flags, False)[result]] = -1
        result[self.plain_width :] = -1
        return result

    @cached_property
    def indicated(self) -> Labels:
        """Categorical inputs with an indicator for each level."""
        encoded = [encoding.place for encoding in self.encodings]
        return np.setdiff1d(np.flatnonzero(self.codes.categorical), encoded).astype(np.intp)

    @cached_property
    def starts(self) -> Labels:
        """The matrix column of the first indicator of each of them."""
        return self.direct.size + np.cumsum(self._sizes) - self._sizes

    @cached_property
    def _sizes(self) -> Labels:
        """Indicators of each of them."""
        return (self.codes.counts + self.codes.missing)[self.indicated]

    @cached_property
    def _used(self) -> Truths:
        """(p + f,) columns of the wide matrix that the matrix has, itself or as indicators."""
        functions, inputs = self.basis.functions, self.basis.inputs
        used_by_powers = {name for function in functions if isinstance(function, Powers) for name in function.columns}
        dated = {function.date for function in functions if isinstance(function, DateParts)}
        read = {name for function in functions if not isinstance(function, Powers) for name in function.columns}
        dropped = (dated if self.keeps_inputs else read) - used_by_powers
        dropped |= {inputs[encoding.place] for encoding in self.encodings}
        return np.array([name not in dropped for name in inputs] + [True] * self.basis.width, np.bool_)

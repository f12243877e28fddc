"""Linear forms of a few columns each, as flat arrays: of oblique splits, and of leaves."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.base.errors import CorruptModel
from app.ml.contract.algorithm import JSON, Labels, Matrix, Vector
from app.ml.numerics.trees.compiled import linear_forms as kernels
from app.ml.numerics.trees.forest import Trees, sound


class Form(NamedTuple):
    """One of `Forms`, with e entries."""

    column: NDArray[np.int32]
    coef: Vector
    centre: Vector
    part: Vector


class Forms(NamedTuple):
    """F forms Σ coef (x - centre), each of the E entries from its `start` to the next."""

    start: NDArray[np.int64]
    """(F + 1,)"""
    column: NDArray[np.int32]
    """(E,)"""
    coef: Vector
    """(E,)"""
    centre: Vector
    """(E,)"""
    part: Vector
    """(E,) of |coef| × deviation where it was made, as a share of the form's."""

    @property
    def size(self) -> int:
        return self.start.size - 1

    def take(self, places: Sequence[int] | NDArray[np.integer]) -> "Forms":
        """Only these, in this order."""
        return joined([self.one(int(place)) for place in places])

    def one(self, place: int) -> Form:
        part = slice(int(self.start[place]), int(self.start[place + 1]))
        return Form._make(field[part] for field in self[1:])

    def project(self, x: Matrix) -> Matrix:
        """(n, F) of rows (n, d); NaN where a value is missing."""
        out = np.empty((len(x), self.size))
        kernels.project(x, *self[:4], out)
        return out

    def terms(self, place: int) -> list[JSON]:
        """The columns of one form and their coefficients."""
        form = self.one(place)
        pairs = zip(form.column.tolist(), form.coef.tolist(), strict=True)
        return [{"column": column, "coef": coef} for column, coef in pairs]

    def shift(self, place: int) -> float:
        """Σ coef · centre: what Σ coef x is more than the form."""
        form = self.one(place)
        return float(form.coef @ form.centre)


def joined(parts: Sequence[Form]) -> Forms:
    """One after the other."""
    start = np.cumsum([0, *(part.column.size for part in parts)]).astype(np.int64)
    return Forms(start, *(np.concatenate(field) for field in zip(NOTHING, *parts, strict=True)))


NOTHING = Form(np.zeros(0, np.int32), np.zeros(0), np.zeros(0), np.zeros(0))
NONE = joined([])


class Bounded(NamedTuple):
    """Linear functions that leaves of a regression tree add to their means: a form for each row of `Trees.values`."""

    forms: Forms
    low: Vector
    """(L,) the least and the greatest prediction of each."""
    high: Vector


MEANS = Bounded(NONE, np.zeros(0), np.zeros(0))


def predictions(trees: Trees, splits: Forms, leaves: Bounded, x: Matrix) -> Matrix:
    """The values (n, k) of one tree for rows x (n, d): its columns from d on are `splits`.

    Raises CorruptModel for arrays that are no such tree.
    """
    out = np.zeros((len(x), trees.values.shape[1]))
    d, rows = x.shape[1], len(trees.values)
    if trees.levels.size != d + splits.size or not (rows and _fit(splits, d) and _fit(leaves.forms, d)):
        raise CorruptModel("The stored forms are of other columns.")
    if leaves.forms.size and (out.shape[1] != 1 or {leaves.forms.size, leaves.low.size, leaves.high.size} != {rows}):
        raise CorruptModel("The stored leaves have no prediction.")
    kernels.add_formed(x, *sound(trees)[1:], *splits[:4], *leaves.forms[:4], leaves.low, leaves.high, out)
    return out


def reached(trees: Trees, splits: Forms, x: Matrix) -> Labels:
    """The leaf where each row (n, d) ends; -1 if it goes to both children on its way there."""
    out = np.empty(len(x), np.intp)
    kernels.reach(x, *trees[1:-1], *splits[:4], out)
    return out


def _fit(forms: Forms, d: int) -> bool:
    """True if compiled code finds everything that it reads."""
    start, column = forms.start, forms.column
    entries = column.size
    if start.ndim != 1 or not start.size or any(array.shape != (entries,) for array in forms[1:]):
        return False
    whole = start[0] == 0 and start[-1] == entries and bool((start[1:] >= start[:-1]).all())
    return whole and bool(((column >= 0) & (column < d)).all())

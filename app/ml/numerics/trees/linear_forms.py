"""Linear forms of a few columns each, flat: what an oblique question asks about, and what a leaf may answer with."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.errors import CorruptModel
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

    def told(self, place: int) -> list[JSON]:
        """The columns of one form and their coefficients."""
        one = self.one(place)
        pairs = zip(one.column.tolist(), one.coef.tolist(), strict=True)
        return [{"column": column, "coef": coef} for column, coef in pairs]

    def shift(self, place: int) -> float:
        """Σ coef · centre: what Σ coef x is more than the form."""
        one = self.one(place)
        return float(one.coef @ one.centre)


def joined(parts: Sequence[Form]) -> Forms:
    """One after the other."""
    start = np.cumsum([0, *(one.column.size for one in parts)]).astype(np.int64)
    return Forms(start, *(np.concatenate(field) for field in zip(NOTHING, *parts, strict=True)))


NOTHING = Form(np.zeros(0, np.int32), np.zeros(0), np.zeros(0), np.zeros(0))
NONE = joined([])


class Bounded(NamedTuple):
    """What the leaves of a tree of numbers add to their means: a form for each row of `Trees.answer`, or none."""

    forms: Forms
    low: Vector
    """(L,) the least and the greatest that each may say."""
    high: Vector


MEANS = Bounded(NONE, np.zeros(0), np.zeros(0))


def answers(trees: Trees, questions: Forms, leaves: Bounded, x: Matrix) -> Matrix:
    """What one tree says of rows x (n, d), (n, k): its columns from d on are `questions`.

    Raises CorruptModel for arrays that are no such tree.
    """
    out = np.zeros((len(x), trees.answer.shape[1]))
    d, result = x.shape[1], len(trees.answer)
    if trees.levels.size != d + questions.size or not (result and _fit(questions, d) and _fit(leaves.forms, d)):
        raise CorruptModel("The stored forms are of other columns.")
    if leaves.forms.size and (out.shape[1] != 1 or {leaves.forms.size, leaves.low.size, leaves.high.size} != {result}):
        raise CorruptModel("The stored leaves have no prediction.")
    kernels.add_formed(x, *sound(trees)[1:], *questions[:4], *leaves.forms[:4], leaves.low, leaves.high, out)
    return out


def reached(trees: Trees, questions: Forms, x: Matrix) -> Labels:
    """The leaf where each row (n, d) ends; -1 if it goes both ways on its way there."""
    out = np.empty(len(x), np.intp)
    kernels.reach(x, *trees[1:-1], *questions[:4], out)
    return out


def _fit(forms: Forms, d: int) -> bool:
    """Whether compiled code finds all that it looks for."""
    start, column = forms.start, forms.column
    entries = column.size
    if start.ndim != 1 or not start.size or any(array.shape != (entries,) for array in forms[1:]):
        return False
    whole = start[0] == 0 and start[-1] == entries and bool((start[1:] >= start[:-1]).all())
    return whole and bool(((column >= 0) & (column < d)).all())

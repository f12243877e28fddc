"""Training rows, checked once, and the types of tasks and targets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.base.errors import InvalidData
from app.ml.contract.difficulty_stages import Curriculum
from app.ml.contract.offset_column import OffsetColumn
from app.ml.contract.relations import Relations
from app.ml.contract.sparse_rows import SparseRows, sparse
from app.ml.contract.task import TargetKind, Task

Vector: TypeAlias = NDArray[np.float64]
"""Shape (n,)."""
Matrix: TypeAlias = NDArray[np.float64]
"""Shape (n, d), C-contiguous."""
Labels: TypeAlias = NDArray[np.intp]
"""Shape (n,), whole numbers counted from 0."""
JSON: TypeAlias = Any
"""A value that `json.dumps` takes."""


class Unlabelled(NamedTuple):
    """Rows without a target, for algorithms that learn from them too."""

    x: Matrix
    """(m, d) in the columns of the labelled rows."""
    numbers: Labels | None = None
    """(m,) numbers of the rows in the dataset, from 0; None: not known."""
    relations: Relations | None = None
    """Between the labelled rows and, after them, these; None: none are given, or a square, which the columns hold."""

    def take(self, rows: Labels) -> "Unlabelled":
        return Unlabelled(self.x[rows], None if self.numbers is None else self.numbers[rows])


@dataclass(frozen=True, slots=True)
class Data:
    """Rows to learn from. `Data.of` is the only door: what is inside has been checked once.

    All arrays are read-only. `y` holds the numbers of a regression, or the class codes
    0 … k-1 as floats, or nothing (shape (0,)) when there is no target; `targets` is the same in matrix
    form, (n, 1) or one-hot (n, k) or (n, 0). Row weights are positive and average 1 unless given otherwise.
    """

    task: Task
    x: Matrix
    """`SparseRows` instead, where an algorithm that accepts `SPARSE` learns from texts."""
    y: Vector
    targets: Matrix
    weights: Vector
    levels: Labels
    """(d,): 0 for a numeric column, else the number of its categories."""
    names: tuple[str, ...] = ()
    """(d,) of the columns, where they have any: "age", "plan=pro"."""
    words: tuple[tuple[str, ...], ...] = ()
    """(d,) of the columns, where they are known: the names of the levels by code; none of a numeric column."""
    labels: tuple[bool | int | float | str, ...] = ()
    """(k,) of the classes by code, where they are known."""
    indicated: int = 0
    """Categorical inputs that have an indicator column for each level: in every row these add up to 1."""
    numbers: Labels | None = None
    """(n,) numbers of the rows in the dataset, from 0; None: not known."""
    unlabelled: Unlabelled | None = None
    """Further rows, without a target; None: there are none, or the algorithm does not learn from them."""
    items: NDArray[np.str_] | None = None
    """(n,) names of the rows; None: they have none."""
    relations: Relations | None = None
    """Between the rows; None: none are given."""
    curriculum: Curriculum | None = None
    """In which stages rows are learned; None: all at once."""
    categories: Labels | None = None
    """(d,) number of the input, categorical or true or false, that a column indicates; -1 for others. None: of none."""
    offset: OffsetColumn | None = None
    """The column that is part of the score and no input; None: there is none, or the algorithm takes none."""

    @classmethod
    def of(
        cls,
        task: Task,
        x: ArrayLike,
        y: ArrayLike | None = None,
        *,
        classes: int = 0,
        weights: ArrayLike | None = None,
        levels: ArrayLike | None = None,
        missing: bool = False,
        names: Sequence[str] = (),
        words: Sequence[tuple[str, ...]] = (),
        labels: Sequence[bool | int | float | str] = (),
        indicated: int = 0,
        numbers: Labels | None = None,
        unlabelled: Unlabelled | None = None,
        items: NDArray[np.str_] | None = None,
        relations: Relations | None = None,
        target: TargetKind | None = None,
        categories: Labels | None = None,
        offset: OffsetColumn | None = None,
    ) -> Self:
        """Check and freeze.

        x: (n, d) finite numbers, NaN allowed if `missing`. y: (n,), needed by supervised tasks.
        target: kind of y, for a task without a target of its own.
        classes: k, at least 1 more than the largest code; found from y when 0.

        Raises InvalidData for wrong shapes, no rows, or values that are not finite.
        """
        matrix = _frozen(x, ndim=2, name="x", missing=missing)
        n, d = matrix.shape
        if n == 0:
            raise InvalidData("There are no rows to learn from.")
        kind = task.record.target or target
        values = _frozen(y if kind and y is not None else np.zeros(0), ndim=1, name="y")
        if kind and values.shape != (n,):
            raise InvalidData(f"The target has {values.size} values for {n} rows.")
        if kind is TargetKind.CLASSES:
            if (values < 0).any() or (values != np.floor(values)).any():
                raise InvalidData("Class codes are whole numbers from 0.")
            k = max(classes, int(values.max()) + 1)
            targets = np.zeros((n, k))
            targets[np.arange(n), values.astype(np.intp)] = 1.0
        else:
            targets = values.reshape(n, -1).copy() if kind else np.zeros((n, 0))
        row_weights = _frozen(np.ones(n) if weights is None else weights, ndim=1, name="weights")
        if row_weights.shape != (n,) or (row_weights <= 0).any():
            raise InvalidData(f"There must be {n} row weights, each above zero.")
        kinds = np.zeros(d, np.intp) if levels is None else np.array(levels, np.intp)
        if kinds.shape != (d,):
            raise InvalidData(f"There are {kinds.size} level counts for {d} columns.")
        targets.setflags(write=False)
        kinds.setflags(write=False)
        if unlabelled is not None:
            unlabelled_x = _frozen(unlabelled.x, ndim=2, name="x of the unlabelled rows", missing=missing)
            if unlabelled_x.shape[1] != d:
                raise InvalidData(f"The unlabelled rows have {unlabelled_x.shape[1]} columns, the others {d}.")
            unlabelled = unlabelled._replace(x=unlabelled_x)
        meaning = tuple(names), tuple(words), tuple(labels), indicated
        beside = numbers, unlabelled, items, relations
        return cls(
            task, matrix, values, targets, row_weights, kinds, *meaning, *beside, categories=categories, offset=offset
        )

    @property
    def square(self) -> Matrix | None:
        """(n, n) given values of all pairs of rows; None: there are none."""
        return None if self.relations is None else self.relations.square

    @property
    def by_item(self) -> bool:
        """True if rows are items of which nothing but edges is known: see `Relations.by_item`."""
        return self.relations is not None and self.relations.by_item

    @property
    def codes(self) -> Labels:
        """Class codes, shape (n,)."""
        return self.y.astype(np.intp)

    @property
    def stages(self) -> list[Labels]:
        """Rows of each stage of a fit, each among those of the next; the last stage has all rows."""
        return [np.arange(len(self.x))] if self.curriculum is None else self.curriculum.stages()

    @property
    def prediction_shape(self) -> tuple[int, ...]:
        """Shape of supervised predictions: (n,) numbers, or (n, k) probabilities."""
        return self.targets.shape if self.task.of_classes else self.y.shape

    @property
    def signs(self) -> Matrix:
        """Targets as they are for regression; +1 and -1 for classes. Shape (n, k)."""
        return 2.0 * self.targets - 1.0 if self.task.of_classes else self.targets

    def called(self, codes: Iterable[int]) -> str:
        """The names of class codes, for a sentence; the codes where names are not known."""
        return ", ".join(str(self.labels[code] if self.labels else code) for code in codes)

    def directions(self, *, intercept: bool) -> int:
        """The most that columns can span beside the intercept: indicators of one input determine one of them."""
        return int(self.x.shape[1]) - (self.indicated if intercept else max(0, self.indicated - 1))

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "Data":
        """The same columns, only these of the labelled rows; the number of classes stays."""
        picked = (self.x[rows], self.y[rows] if self.y.size else self.y, self.targets[rows], self.weights[rows])
        for array in picked:
            array.setflags(write=False)
        numbers = None if self.numbers is None else self.numbers[rows]
        meaning = self.names, self.words, self.labels, self.indicated
        items = None if self.items is None else self.items[rows]
        curriculum = None if self.curriculum is None else self.curriculum.take(rows)
        taken = Data(
            self.task,
            *picked,
            self.levels,
            *meaning,
            numbers,
            self.unlabelled,
            items,
            curriculum=curriculum,
            categories=self.categories,
            offset=self.offset,
        )
        if self.relations is None:
            return taken
        places = np.arange(len(self.x))[rows]
        taken = taken if self.square is None else taken.columns(places)
        return replace(taken, relations=self.relations.take(places, len(self.x)))

    def columns(self, places: Labels) -> "Data":
        """The same rows, only these columns."""
        x, levels = self.x.take(places, axis=1), self.levels[places]
        x.setflags(write=False)
        names = tuple(self.names[place] for place in places) if self.names else ()
        words = tuple(self.words[place] for place in places) if self.words else ()
        unlabelled = self.unlabelled and self.unlabelled._replace(x=self.unlabelled.x.take(places, axis=1))
        categories = None if self.categories is None else self.categories[places]
        return replace(
            self,
            x=x,
            levels=levels,
            names=names,
            words=words,
            indicated=0,
            unlabelled=unlabelled,
            categories=categories,
        )

    def mapped(self, x: Matrix, names: Sequence[str], unlabelled: Unlabelled | None) -> "Data":
        """The same rows in other columns (n, p), all of them numbers."""
        return replace(
            self,
            x=x,
            levels=np.zeros(x.shape[1], np.intp),
            names=tuple(names),
            words=(),
            indicated=0,
            unlabelled=unlabelled,
            categories=None,
        )

    def with_target(self, task: Task, y: Vector, *, classes: int = 0, weights: Vector | None = None) -> "Data":
        """The same inputs with another target, for another task. A weight of zero leaves the row out."""
        weighted = slice(None) if weights is None else weights > 0
        levels, missing = self.levels, sparse(self.x) is None and bool(np.isnan(self.x).any())
        return Data.of(
            task,
            self.x if weights is None else self.x[weighted],
            y[weighted],
            classes=classes,
            weights=self.weights if weights is None else weights[weighted],
            levels=levels,
            missing=missing,
            names=self.names,
            words=self.words,
            numbers=None if self.numbers is None else self.numbers[weighted],
            unlabelled=self.unlabelled,
            categories=self.categories,
        )

    def labelled(self, rows: Labels, codes: Labels, weights: Vector) -> "Data":
        """These of the unlabelled rows as labelled ones too, after the others. Raises InvalidData if there are none.

        rows: (r,) places among the unlabelled rows. codes: (r,) their classes. weights: (r,) above zero.
        """
        if self.unlabelled is None:
            raise InvalidData("There are no unlabelled rows.")
        more = self.unlabelled.take(rows)
        is_numbered = self.numbers is not None and more.numbers is not None
        return Data.of(
            self.task,
            np.concatenate([self.x, more.x]),
            np.concatenate([self.y, codes]),
            classes=self.targets.shape[1],
            weights=np.concatenate([self.weights, weights]),
            levels=self.levels,
            missing=True,
            names=self.names,
            words=self.words,
            labels=self.labels,
            indicated=self.indicated,
            numbers=np.concatenate([self.numbers, more.numbers]) if is_numbered else None,
            unlabelled=self.unlabelled,
            categories=self.categories,
        )


def _frozen(values: ArrayLike, *, ndim: int, name: str, missing: bool = False) -> NDArray[np.float64]:
    if isinstance(values, SparseRows):
        if not np.isfinite(values.csr.data).all():
            raise InvalidData(f"{name} holds values that are not finite.")
        values.setflags(write=False)
        return cast("NDArray[np.float64]", values)
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and _sealed(values):
        array = values
    else:
        array = np.array(values, dtype=np.float64, order="C")
    if array.ndim != ndim:
        raise InvalidData(f"{name} has {array.ndim} dimensions, not {ndim}.")
    bad = np.isinf(array) if missing else ~np.isfinite(array)
    if bad.any():
        raise InvalidData(f"{name} holds {int(bad.sum())} values that are not finite.")
    array.setflags(write=False)
    return array


def _sealed(array: NDArray[Any]) -> bool:
    """True if nobody can change it, so that no copy is needed."""
    return array.flags.c_contiguous and not array.flags.writeable and array.base is None

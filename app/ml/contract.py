"""What an algorithm is.

An algorithm file defines a `Params` class, a `State` NamedTuple of arrays, plain functions
of `(params, state, data)`, and states them in one `ALGORITHM` record. Everything else
(request validation, storage, the contract tests, the documentation) follows from that record.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ForwardRef, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from app.errors import InvalidData
from app.wire import Body

if TYPE_CHECKING:
    import scipy

Vector: TypeAlias = NDArray[np.float64]
"""Shape (n,)."""
Matrix: TypeAlias = NDArray[np.float64]
"""Shape (n, d), C-contiguous."""
Labels: TypeAlias = NDArray[np.intp]
"""Shape (n,), whole numbers counted from 0."""
JSON: TypeAlias = Any
"""What `json.dumps` takes."""


class Affine(NamedTuple):
    """Rows x (d,) of a matrix from rows z (d,) in the table's own units:  xⱼ = shiftⱼ + Σ matrixⱼₖ zₖ."""

    matrix: "scipy.sparse.csr_array"
    """(d, d)."""
    shift: Vector
    """(d,)."""

    def coef(self, coef: Matrix) -> Matrix:
        """Of z, from those of x: (d,) or (d, k). The same linear map takes factors of their covariance."""
        return np.asarray(self.matrix.T @ coef)

    def constant(self, coef: Matrix) -> Matrix:
        """What the intercept gains: () or (k,)."""
        return np.asarray(self.shift @ coef)


class Task(StrEnum):
    REGRESSION = "regression"
    CLASSIFICATION = "classification"
    CLUSTERING = "clustering"
    PROJECTION = "projection"
    DENSITY = "density"

    @property
    def supervised(self) -> bool:
        return self in {Task.REGRESSION, Task.CLASSIFICATION}


class Symmetry(StrEnum):
    """A change of the input that must not change the answer (or must change it in the known way)."""

    ROW_ORDER = "row_order"
    COLUMN_ORDER = "column_order"
    SCALE = "scale"
    """Columns multiplied by powers of two: predictions stay, given unscaled preparation."""
    LABEL_NAMES = "label_names"
    """Classes renumbered: probabilities are renumbered alike."""
    WEIGHTS = "weights"
    """A row of weight 2 is the same as the row given twice."""


class Accepts(StrEnum):
    """What an algorithm takes as it is, so that preparation leaves it alone."""

    MISSING = "missing"
    """NaN in `Data.x` means missing."""
    CATEGORIES = "categories"
    """Columns with `Data.levels[j] > 0` hold level codes 0 … levels[j]-1; NaN is also an unseen level."""


class Params(Body):
    """The hyperparameters of one algorithm: each with a default, bounds and a sentence."""


if TYPE_CHECKING:
    Learner: TypeAlias = Params
else:
    Learner = ForwardRef("Learner")
"""The type of a parameter that is itself an algorithm with its parameters: `{"name": "ridge", "penalty": 2.0}`.
The catalogue says which there are, once all files are known."""


def learner(description: str, *names: str, **default: JSON) -> Any:
    """The field of a `Learner` with its default, told in words: generators of clients stumble over one in JSON.

    With names: of a list of learners.
    """
    if names:
        said = f"{description} Absent: {', '.join(names)}."
        many = [{"name": name} for name in names]
        return Field(
            many,
            validate_default=True,
            min_length=1,
            max_length=50,
            description=said,
            json_schema_extra=_without_default,
        )
    said = f"{description} Absent: {default['name']}."
    return Field(default, validate_default=True, description=said, json_schema_extra=_without_default)


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


@dataclass(frozen=True, slots=True)
class Data:
    """Rows to learn from. `Data.of` is the only door: what is inside has been checked once.

    All arrays are read-only. `y` holds the numbers of a regression, or the class codes
    0 … k-1 as floats, or nothing (shape (0,)) when there is no target; `targets` is the same in matrix
    form, (n, 1) or one-hot (n, k) or (n, 0). Row weights are positive and average 1 unless given otherwise.
    """

    task: Task
    x: Matrix
    y: Vector
    targets: Matrix
    weights: Vector
    levels: Labels
    """(d,): 0 for a numeric column, else the number of its categories."""
    names: tuple[str, ...] = ()
    """(d,) of the columns, where they have any: "age", "plan=pro"."""

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
    ) -> Self:
        """Check and freeze.

        x: (n, d) finite numbers, NaN allowed if `missing`. y: (n,), needed by supervised tasks.
        classes: k, at least 1 more than the largest code; found from y when 0.

        Raises InvalidData for wrong shapes, no rows, or values that are not finite.
        """
        matrix = _frozen(x, ndim=2, name="x", missing=missing)
        n, d = matrix.shape
        if n == 0:
            raise InvalidData("There are no rows to learn from.")
        target = _frozen(y if task.supervised and y is not None else np.zeros(0), ndim=1, name="y")
        if task.supervised and target.shape != (n,):
            raise InvalidData(f"The target has {target.size} values for {n} rows.")
        if task is Task.CLASSIFICATION:
            if (target < 0).any() or (target != np.floor(target)).any():
                raise InvalidData("Class codes are whole numbers from 0.")
            k = max(classes, int(target.max()) + 1)
            targets = np.zeros((n, k))
            targets[np.arange(n), target.astype(np.intp)] = 1.0
        else:
            targets = target.reshape(n, -1).copy() if task.supervised else np.zeros((n, 0))
        row_weights = _frozen(np.ones(n) if weights is None else weights, ndim=1, name="weights")
        if row_weights.shape != (n,) or (row_weights <= 0).any():
            raise InvalidData(f"There must be {n} row weights, each above zero.")
        kinds = np.zeros(d, np.intp) if levels is None else np.array(levels, np.intp)
        if kinds.shape != (d,):
            raise InvalidData(f"There are {kinds.size} level counts for {d} columns.")
        targets.setflags(write=False)
        kinds.setflags(write=False)
        return cls(task, matrix, target, targets, row_weights, kinds, tuple(names))

    @property
    def codes(self) -> Labels:
        """Class codes, shape (n,)."""
        return self.y.astype(np.intp)

    @property
    def answer_shape(self) -> tuple[int, ...]:
        """Of a supervised answer: (n,) numbers, or (n, k) probabilities."""
        return self.targets.shape if self.task is Task.CLASSIFICATION else self.y.shape

    @property
    def signs(self) -> Matrix:
        """Targets as they are for regression; +1 and -1 for classes. Shape (n, k)."""
        return 2.0 * self.targets - 1.0 if self.task is Task.CLASSIFICATION else self.targets

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "Data":
        """The same columns, only these rows; the number of classes stays."""
        picked = (self.x[rows], self.y[rows] if self.y.size else self.y, self.targets[rows], self.weights[rows])
        for array in picked:
            array.setflags(write=False)
        return Data(self.task, *picked, self.levels, self.names)

    def columns(self, places: Labels) -> "Data":
        """The same rows, only these columns."""
        x, levels = np.ascontiguousarray(self.x[:, places]), self.levels[places]
        x.setflags(write=False)
        names = tuple(self.names[place] for place in places) if self.names else ()
        return replace(self, x=x, levels=levels, names=names)

    def answering(self, task: Task, y: Vector, *, classes: int = 0, weights: Vector | None = None) -> "Data":
        """The same inputs with another target, for another task. A weight of zero leaves the row out."""
        kept = slice(None) if weights is None else weights > 0
        levels, missing = self.levels, bool(np.isnan(self.x).any())
        return Data.of(
            task,
            self.x if weights is None else self.x[kept],
            y[kept],
            classes=classes,
            weights=self.weights if weights is None else weights[kept],
            levels=levels,
            missing=missing,
            names=self.names,
        )


def _frozen(values: ArrayLike, *, ndim: int, name: str, missing: bool = False) -> NDArray[np.float64]:
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
    """Whether nobody can change it, so that no copy is needed."""
    return array.flags.c_contiguous and not array.flags.writeable and array.base is None


P = TypeVar("P", bound=Params)
S = TypeVar("S")


class Progress(Protocol):
    def __call__(self, fraction: float, **measures: float) -> None:
        """Say how far the fit is, 0 to 1, and what the named measures are now (a point of each curve)."""


def silent(fraction: float, **measures: float) -> None:
    """A `Progress` that nobody watches."""


class Learned(NamedTuple):
    """A fit made on behalf of another learner: predict and state, ready to use."""

    algorithm: "Algorithm[Any, Any]"
    params: Params
    """Stored inside another learner: with the algorithm's `name` among them, as a `Learner`."""
    state: Any

    def predict(self, x: Matrix) -> NDArray[Any]:
        return self.algorithm.predict(self.params, self.state, x)


class Member(NamedTuple):
    """A learner inside a learner."""

    pointer: str
    """Where it stands among the parameters: "/base", "/members/2"."""
    spec: Params
    task: Task
    """What it is used for."""


def _no_nested_fits(_spec: Params, _data: Data) -> Learned:
    raise InvalidData("This context does not fit learners inside learners.")


@dataclass(frozen=True, slots=True)
class Context:
    """What a fit may use besides its data."""

    rng: np.random.Generator
    progress: Progress = silent
    fit: Callable[[Params, Data], Learned] = _no_nested_fits
    """Fits a `Learner` with a generator of its own: what one draws changes nothing for the next."""

    @classmethod
    def of(cls, seed: int, progress: Progress = silent) -> Self:
        return cls(np.random.Generator(np.random.PCG64(seed)), progress)


@dataclass(frozen=True, slots=True)
class Fit(Generic[S]):
    """What came of a fit. Not converging is a fact to report, not an exception."""

    state: S
    converged: bool = True
    iterations: int = 0
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Monitor curves: one value per iteration."""
    warnings: Sequence[str] = ()


class LeaveOneOut(NamedTuple):
    """A closed form for what each row is predicted by a fit of all the others."""

    predict: Callable[[Any, Data], NDArray[np.float64]]
    """Of (params, data): answers as those of `Algorithm.predict`, NaN in rows of which only a fit can tell."""
    unscaled: Callable[[Any], bool]
    """Of params: whether shifting and scaling the columns, each by itself, leaves predictions alone."""


@dataclass(frozen=True, kw_only=True)
class Algorithm(Generic[P, S]):
    """One entry of the catalogue, as its file states it. The file's name is the algorithm's name.

    What `predict` answers by task, for x of shape (n, d): regression (n,) numbers; classification
    (n, k) probabilities; clustering (n,) labels from 0; projection (n, p) coordinates; density (n,) log density.
    """

    tasks: frozenset[Task] | set[Task]
    params: type[P]
    state: type[S]
    fit: Callable[[P, Data, Context], Fit[S]]
    predict: Callable[[P, S, Matrix], NDArray[Any]]

    accepts: frozenset[Accepts] | set[Accepts] = frozenset()
    members: Callable[[P, Task], Sequence[Member]] | None = None
    """Of a learner made of learners: which, and for what. It then accepts what all of them accept."""
    rowwise: bool = False
    """Each row is answered with the same bits in any company: rows of different callers may be predicted together.
    Sums over products of matrices are not so, `app.ml.numerics.linalg.each_row` is."""
    breaks: Mapping[Symmetry, str] = field(default_factory=dict)
    """Symmetries that do not hold, each with the reason."""

    objective: Callable[[P, S, Data], float] | None = None
    """What the fit minimises: nothing near the answer may be lower."""
    interval: Callable[[P, S, Matrix, float], Matrix] | None = None
    """(n, 2) bounds of the prediction at a confidence level."""
    membership: Callable[[P, S, Matrix], Matrix] | None = None
    """(n, k) degrees of belonging to each cluster."""
    known: Callable[[P, Matrix], NDArray[np.bool_]] | None = None
    """Of predicted probabilities (n, k): the rows (n,) that have an answer; the others are told as unknown."""
    inverse: Callable[[P, S, Matrix], Matrix] | None = None
    """From coordinates (n, p) back to inputs (n, d)."""
    explain: Callable[[P, S, Matrix], Sequence[JSON]] | None = None
    """One JSON value a row: why this prediction."""
    leave_one_out: LeaveOneOut | None = None
    """Where it is exact."""
    update: Callable[[P, S, Data, Context], Fit[S]] | None = None
    """One more batch."""
    summary: Callable[[P, S], JSON] | None = None
    """What the fitted model has to say for itself, for the report."""
    unscaled: Callable[[P, S, Affine], JSON] | None = None
    """`summary` in the table's own units: of a linear form, for the columns from which its own are made."""

"""The contract of an algorithm.

An algorithm file defines a `Params` class, a `State` NamedTuple of arrays, plain functions
of `(params, state, data)`, and states them in one `ALGORITHM` record. Everything else
(request validation, storage, the contract tests, the documentation) follows from that record.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, NoReturn, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.capacity import Capacity, GibbsRisk
from app.ml.contract.closed_forms import LeaveOneOut
from app.ml.contract.column_units import Affine, ColumnUnits
from app.ml.contract.data import JSON, Data, Labels, Matrix, Vector
from app.ml.contract.linear_form import LinearForm
from app.ml.contract.members import Inputs, Member, Size
from app.ml.contract.outputs import Output
from app.ml.contract.params import Learner, Params, learner
from app.ml.contract.progress import Progress, silent
from app.ml.contract.random_function import RandomFunction
from app.ml.contract.relations import Form, Meaning, item_places
from app.ml.contract.response_metric import ResponseMetric
from app.ml.contract.streamed_rows import StreamedRows
from app.ml.contract.task import TargetKind, TargetUse, Task
from app.ml.contract.tensor_graph import Tensor
from app.ml.contract.traits import Accepts, Symmetry

__all__ = [
    "JSON",
    "Accepts",
    "Affine",
    "Algorithm",
    "ColumnUnits",
    "Context",
    "Data",
    "Each",
    "Fit",
    "FittedLearner",
    "Form",
    "Inputs",
    "Labels",
    "Learner",
    "LeaveOneOut",
    "LinearForm",
    "Matrix",
    "Meaning",
    "Member",
    "NestedFit",
    "Output",
    "Params",
    "Progress",
    "Size",
    "StreamedRows",
    "Symmetry",
    "TargetKind",
    "TargetUse",
    "Task",
    "Vector",
    "WarmStart",
    "in_turn",
    "item_places",
    "learner",
    "silent",
]

SECONDS_PER_CELL, COPIED_BYTES_PER_CELL = 1e-7, 24.0
"""Seconds of a fit and its predictions per number of the matrix, roughly, and memory: of three copies of it."""
P = TypeVar("P", bound=Params)
S = TypeVar("S")
T = TypeVar("T")


class View(Protocol):
    """The inputs of a model among the columns of another, and the names of its predictions there."""

    def matrix(self, x: Matrix, /) -> Matrix: ...

    def predictions(self, result: NDArray[np.float64], /) -> NDArray[np.float64]: ...

    def packed(self, path: str, arrays: dict[str, NDArray[Any]], /) -> JSON: ...

    def to_tensor(self, x: Tensor, predict: Callable[[Tensor], Tensor], /) -> Tensor: ...


class FittedLearner(NamedTuple):
    """A learner that was fitted for another one: its algorithm, parameters and state, ready to predict."""

    algorithm: "Algorithm[Any, Any]"
    params: Params
    """Stored inside another learner: with the algorithm's `name` among them, as a `Learner`."""
    state: Any
    view: View | None = None
    """Maps the columns and classes of another model; None: it was fitted on these columns."""

    @property
    def name(self) -> str:
        """Name of the algorithm; only where this is stored inside another learner."""
        return cast("Learner", self.params).name

    def predict(self, x: Matrix) -> NDArray[Any]:
        if self.view is None:
            return self.algorithm.predict(self.params, self.state, x)
        return self.view.predictions(self.algorithm.predict(self.params, self.state, self.view.matrix(x)))


class NestedFit(NamedTuple):
    """A learner, and the rows that it is fitted to."""

    spec: Learner
    data: Callable[[], Data]
    """Makes the rows when the fit begins: those of all fits together may not fit into memory."""


class Each(Protocol):
    def __call__(self, kind: type[T], tasks: Sequence[Callable[[], T]], /) -> Iterator[T]:
        """The result of each task, in their order, however many are done at once.

        kind: FittedLearner, or a NamedTuple that could be part of a state. Tasks are independent of each other.
        """


def in_turn(_kind: type[T], tasks: Sequence[Callable[[], T]]) -> Iterator[T]:
    """An `Each` that does one after the other."""
    return (task() for task in tasks)


def _no_nested_fits(*_: object) -> NoReturn:
    raise InvalidData("This context does not fit learners inside learners.")


@dataclass(frozen=True, slots=True)
class Context:
    """The resources of a fit besides its data."""

    rng: np.random.Generator
    progress: Progress = silent
    fit_all: Callable[[Sequence[NestedFit]], Iterator[FittedLearner]] = _no_nested_fits
    """Fits learners, perhaps at once, each with a generator of its own: what one draws changes nothing for the next.
    They come in their order, and the progress is reported."""
    each: Each = in_turn
    """Runs tasks, perhaps at once."""

    @classmethod
    def of(cls, seed: int, progress: Progress = silent) -> Self:
        return cls(np.random.Generator(np.random.PCG64(seed)), progress)

    def fit(self, spec: Learner, data: Data) -> FittedLearner:
        """One learner, as `fit_all`; the progress is the caller's."""
        return next(self.fit_all([NestedFit(spec, lambda: data)]))


@dataclass(frozen=True, slots=True)
class Fit(Generic[S]):
    """The result of a fit. Not converging is a fact to report, not an exception."""

    state: S
    converged: bool = True
    iterations: int = 0
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Monitor curves: one value per iteration."""
    warnings: Sequence[str] = ()
    gibbs: GibbsRisk | None = None
    """Losses of members with equal votes on rows that they have not seen; None: not known."""


class WarmStart(NamedTuple):
    """A fit that starts from the state of another fit of the same columns and classes."""

    fit: Callable[[Any, Any, Data, Context], Fit[Any]]
    """Maps (params, state, data, context) to the fit; the state is in the columns of the data."""
    moved: Callable[[Any, ColumnUnits], Any]
    """Maps (state, units) to the same state in columns whose numbers are `units.values` of its own."""
    equal: tuple[str, ...] = ()
    """Parameters that both fits have in common."""
    values: str = "coefficients"
    """Noun for the numbers that the fit starts from."""
    others: tuple[str, ...] = ()
    """Further algorithms from whose states it starts, as their own `moved` gives them."""
    any_target: bool = False
    """True if a fit of another target, or none, may start from its states: only the columns need to be the same."""


@dataclass(frozen=True, kw_only=True)
class Algorithm(Generic[P, S]):
    """One entry of the catalogue, as its file states it. The file's name is the algorithm's name.

    Shape of predictions by task, for x of shape (n, d): regression (n,) numbers; classification
    (n, k) probabilities; clustering (n,) labels from 0; projection (n, p) coordinates; density (n,) log density.
    """

    tasks: Collection[Task]
    """A tuple where there are several: a request that leaves the task open means the first that fits."""
    params: type[P]
    state: type[S]
    fit: Callable[[P, Data, Context], Fit[S]]
    predict: Callable[[P, S, Matrix], NDArray[Any]]

    graph: Callable[[P, S, Tensor], Tensor] | None = None
    """`predict` as operations on tensors, (n, 1) of what is (n,), for exports. Raises ExportUnsupported for some."""
    targets: Mapping[Task, TargetKind] = field(default_factory=dict)
    """Kind of the target that a task without one of its own needs here, as a projection that separates classes does."""
    target_optional: bool = False
    """True if it can learn such a task without that target as well, from relations."""
    generative: bool = False
    """True if a classifier models the density of each class, not only the boundaries between classes (LION 3.1)."""
    degrees: Callable[[P], bool] = lambda _: False
    """True if its shares of classes are degrees of how clear a case is (LION 3), as votes are, not P(class | x)."""
    accepts: frozenset[Accepts] | set[Accepts] = frozenset()
    relations: Mapping[Form, Collection[Meaning]] = field(default_factory=dict)
    """Forms and meanings of relations between rows that it can learn from, as `Data.relations`."""
    projects_kernels: Callable[[P], bool] = lambda _: False
    """True if a kernel of all pairs need not be positive semidefinite: these parameters project it."""
    edges_alone: bool = False
    """True if edges are enough, without columns."""
    edges_and_target: bool = False
    """True if edges and a target are enough, without columns: rows that have a name and perhaps a label."""
    pair_weights: bool = False
    """True if edges may have weights, as `Edges.weights`."""
    members: Callable[[P, Task], Sequence[Member]] | None = None
    """Learners inside a learner, each with its task. It then accepts what all of them accept, besides its own."""
    for_task: Callable[[P, Task], P] = lambda params, _: params
    """Maps parameters to the same ones with those that are null because their default depends on the task."""
    reads: bool = False
    """True if such a learner computes with columns itself, and accepts nothing but full numbers."""
    through_origin: Callable[[P], bool] = lambda _: False
    """True if these parameters fix the prediction to 0 where all columns are 0: scaling then moves no column's 0."""
    faults: Callable[[P, Inputs], Iterable[Fault]] | None = None
    """Demands of the parameters that the table does not meet; before any row is read."""
    seconds: Callable[[P, Size], float] = lambda _, size: SECONDS_PER_CELL * size.cells
    """Seconds on one core to fit rows and predict as many, members aside: within a factor of three on a noisy table."""
    memory: Callable[[P, Size], float] = lambda _, size: COPIED_BYTES_PER_CELL * size.cells
    """Bytes that a fit takes at most besides its rows, members aside: copies of them, distances of pairs, its state."""
    counts: Callable[[P], bool] = lambda _: False
    """True if it learns from counts: no column has numbers below 0, and none is scaled."""
    terms: Callable[[P, S], Matrix | None] | None = None
    """Maps (params, state) to the weights (d, s) of terms of texts, by class or cluster. None: those of `linear`."""
    offered: bool = True
    """False if no training can choose it: other jobs make its models."""
    rowwise: bool = False
    """Each row is predicted with the same bits among any others: rows of several callers may be predicted together."""
    breaks: Mapping[Symmetry, str] = field(default_factory=dict)
    """Symmetries that do not hold, each with the reason."""
    linear: Callable[[S], LinearForm] | None = None
    """The scores of a fit, where they are linear in the columns."""
    importances: Callable[[P], Callable[[S], Vector] | None] = lambda _: None
    """Maps params to a function of the state: (d,) importance of each column of the matrix. None: there is none."""
    capacity: Callable[[P, S, Data], Capacity] | None = None
    """Maps (params, state, training data) of a classifier to the capacity of what it chose from. None: no bound."""
    least_squares: bool = False
    """True if a regression minimises a weighted sum of squared residuals, with or without a penalty on coefficients."""
    with_errors: Callable[[P], P] | None = None
    """The same parameters where rows weigh 1/σ² of known errors; None: it has no use for them but as weights."""
    objective: Callable[[P, S, Data], float] | None = None
    """The objective of the fit: nothing near the solution may be lower."""
    interval: Callable[[P, S, Matrix, float], Matrix] | None = None
    """(n, 2) bounds of the prediction at a confidence level."""
    own_interval: Callable[[P], bool] = lambda _: True
    """True if `interval` serves these parameters; if not, errors on rows held out bound the target."""
    interval_of_mean: Callable[[P], bool] = lambda _: False
    """True if `interval` bounds the expected value, not a new row."""
    plug_in: Callable[[P], bool] = lambda _: False
    """True if `interval` takes parameters that the rows chose as known, so that errors of unseen rows must scale it."""
    random_function: Callable[[P, S], RandomFunction] | None = None
    """The function with its uncertainty, where that is what it learns."""
    known: Callable[[P, Matrix], NDArray[np.bool_]] | None = None
    """Maps predicted probabilities (n, k) to the rows (n,) that are accepted; the others are reported as unknown."""
    response_metric: Callable[[P], ResponseMetric | None] = lambda _: None
    """Maps params to the metric of a regression that fits its loss. None: none beside those of all regressions."""
    outputs: Mapping[str, Output] = field(default_factory=dict)
    """Further values of a row, which a prediction includes on request, by name."""
    inverse: Callable[[P, S, Matrix], Matrix] | None = None
    """From coordinates (n, p) back to inputs (n, d)."""
    prototypes: Callable[[P, S], Matrix | None] | None = None
    """Rows (k, d) that represent the clusters 0 … k-1, as centres do; None where the fit has none."""
    named: Callable[[P, S, Data, Labels, Sequence[str]], S] | None = None
    """(params, state, data, codes, names) to the state with names of its clusters, by classes: codes (n,) or -1."""
    warm_start: WarmStart | None = None
    """A fit that starts from another one; None: it always starts anew."""
    fit_blocks: Callable[[P, StreamedRows, Context], Fit[S]] | None = None
    """Fit of a table that memory does not hold, with the result of `fit`. None: it has `update`, or needs all rows."""
    free_parameters: Callable[[P, S], float] | None = None
    """Number of parameters that the fit of a density was free to choose, as information criteria count them."""
    joined: Callable[[P, S, Labels], tuple[Matrix, Matrix]] | None = None
    """Distances (m, m) of some training rows (m,) of a clustering that keeps a tree, and the heights of their joins."""
    grouped: Callable[[P, S, int], Labels] | None = None
    """(params, state, m) to the group (k,) from 0 of each cluster, where the tree of a clustering has m ≤ k of them."""
    explain: Callable[[P, S, Matrix], Sequence[JSON]] | None = None
    """One JSON value a row: why this prediction."""
    queries: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Functions of (params, state, …) behind the queries of these names, as `app/ml/queries/` calls them."""
    leave_one_out: LeaveOneOut | None = None
    """The closed form of leave-one-out; None where it would not be exact."""
    update: Callable[[P, S, Data, Context], Fit[S]] | None = None
    """One more batch. `converged`: it changed nothing."""
    in_stages: Callable[[P], Iterable[Fault]] | None = None
    """Faults of the parameters that keep it from learning `Data.stages` in turn. None: it learns all rows at once."""
    passes: Callable[[P], int] = lambda _: 1
    """Passes of `update` over the batches of a table that does not fit into memory, unless it converges earlier."""
    summary: Callable[[P, S], JSON] | None = None
    """Summary of the fitted model, for the report."""
    unscaled: Callable[[P, S, Affine], JSON] | None = None
    """`summary` in the table's own units: of a linear form, for the columns from which its own are made."""
    in_units: Callable[[P, S, ColumnUnits], JSON] | None = None
    """`summary` in the table's own units: of means, curves and whatever else is of one column at a time."""

    def target(self, task: Task) -> TargetKind | None:
        """Kind of the target that it learns this task from; None: it takes no target."""
        return task.record.target or self.targets.get(task)

    def target_use(self, task: Task) -> TargetUse:
        """Use of a target in this task."""
        if self.target(task):
            return TargetUse.OPTIONAL if self.target_optional else TargetUse.NEEDED
        return TargetUse.OPTIONAL if task.record.compared else TargetUse.NEVER

"""Every algorithm of the catalogue with each of its tasks: the cases that all files of this folder run on.

A file added to `app/ml/algorithms` appears here by itself. A test takes `case` (one algorithm, one task) or
`entry` (one algorithm).
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import Entry, catalogue
from app.ml.contract.algorithm import Accepts, Data, Fit, Params, TargetKind, Task
from app.ml.contract.data import Unlabelled
from app.ml.contract.task import PredictionKind
from app.ml.models import state_format

settings.register_profile(
    "contract",
    deadline=None,
    derandomize=True,  # the same draws every time: a failure is the algorithm's doing, not the day's
    database=None,
    phases=[Phase.generate],  # a draw is small already; shrinking it would fit hundreds of times
    suppress_health_check=list(HealthCheck),
)

NAMED = {"null": st.none(), "boolean": st.booleans()}
ITERATIONS = frozenset({"tol", "max_iter"})
"""Parameters that say how exactly to solve, not what: the minimum is looked for with their defaults."""

UNLABELLED = 20
"""Rows without a target beside the others."""

MOST = {"n_estimators": 24, "n_init": 3, "epochs": 20, "max_iter": 100}
"""Parameters whose size costs time and shows nothing new: members, starts, passes and steps repeat each other."""

FITTED: dict[str, Fit[Any]] = {}
"""By case."""

DEMANDS = frozenset({"edge", "C", "kernel"})
"""Parameters by which a fit fails unless the data meets them: they keep their defaults."""

OF_OTHER_TARGETS = frozenset({"poisson", "gamma", "tweedie", "cross_entropy", "focal"})
"""Losses of targets that the drawn tables do not have."""


@dataclass(frozen=True)
class Case:
    """One algorithm at one task."""

    entry: Entry
    task: Task

    def __str__(self) -> str:
        return f"{self.entry.name}-{self.task}"

    @property
    def algorithm(self) -> Any:
        return self.entry.algorithm

    @property
    def accepts(self) -> frozenset[Accepts]:
        return nested.accepts(self.algorithm, self.params, self.task)

    @property
    def params(self) -> Params:
        return self.algorithm.for_task(self.algorithm.params(), self.task)

    def fit(self, data: Data, params: Params | None = None, seed: int = 0, **context: Any) -> Fit[Any]:
        return self.algorithm.fit(params or self.params, data, nested.context(seed, **context))

    @property
    def fitted(self) -> Fit[Any]:
        """The fit of `data()` by the defaults, made once for all tests that only read it."""
        if str(self) not in FITTED:
            FITTED[str(self)] = self.fit(self.data())
        return FITTED[str(self)]

    def predict(self, state: Any, x: Any, params: Params | None = None) -> Any:
        return self.algorithm.predict(params or self.params, state, np.ascontiguousarray(x, dtype=np.float64))

    def data(self, rows: int = 60, columns: int = 4, classes: int = 3, seed: int = 1, **change: Any) -> Data:
        """Rows in general position, with something to learn: a plane, or blobs that overlap a little."""
        x, y = self.drawn(rows, columns, classes, seed)
        return self.of(x, y, classes=classes, **change)

    def drawn(self, rows: int, columns: int, classes: int, seed: int) -> tuple[Any, Any]:
        """Rows and targets; counts for an algorithm of counts."""
        x, y = drawn(self.task, rows, columns, classes, seed)
        return (np.floor(np.exp(np.clip(x, -2, 4))), y) if self.algorithm.counts(self.params) else (x, y)

    def of(self, x: Any, y: Any, classes: int = 3, **change: Any) -> Data:
        kind = self.algorithm.target(self.task)
        k = classes if kind is TargetKind.CLASSES else 0
        return Data.of(self.task, x, None if kind is None else y, classes=k, target=kind, **change)

    def mixed(self, rows: int = 60, seed: int = 1) -> Data:
        """Weighted rows with names, and as much of missing values, categories and unlabelled rows as the algorithm
        says it accepts.
        """
        x, y = self.drawn(rows + UNLABELLED, 4, 3, seed)
        rng = np.random.default_rng(seed)
        levels = np.zeros(4, np.intp)
        if Accepts.CATEGORIES in self.accepts:
            levels[1] = 5
            x[:, 1] = rng.integers(0, 5, len(x))
        if Accepts.MISSING in self.accepts:
            x[rng.random(x.shape) < 0.2] = np.nan
        rest = Unlabelled(x[rows:], np.arange(rows, len(x))) if Accepts.UNLABELLED in self.accepts else None
        named: dict[str, Any] = {"numbers": np.arange(rows), "items": np.array([f"row {i}" for i in range(rows)])}
        for array in named.values():
            array.setflags(write=False)
        more = named | {"weights": rng.uniform(0.5, 2, rows), "unlabelled": rest}
        return self.of(x[:rows], y[:rows], levels=levels, missing=bool(self.accepts), **more)

    def drawn_params(self, *, solving: bool = True) -> st.SearchStrategy[Params]:
        """Parameters within their bounds, found from the JSON schema; without `solving`, how exactly stays."""
        drawn = _drawn_params(self.algorithm.params, solving=solving)
        return drawn.map(lambda params: self.algorithm.for_task(params, self.task))


@functools.cache
def _drawn_params(params: type[Params], *, solving: bool) -> st.SearchStrategy[Params]:
    """Made once: the JSON schema of an algorithm with learners within takes 0.1 s."""
    schema = params.model_json_schema()
    kept = DEMANDS if solving else DEMANDS | ITERATIONS
    names = [name for name in schema["properties"] if name not in kept]
    # A learner within keeps its default: its own parameters are drawn where it is the case. So do names of columns.
    own = {name: schema["properties"][name] for name in names if not _kept(schema["properties"][name])}
    small = {name: field | {"maximum": MOST[name]} if name in MOST else field for name, field in own.items()}
    fields = {name: _values(field, schema.get("$defs", {})) for name, field in small.items()}
    return st.fixed_dictionaries(fields).map(lambda drawn: params(**drawn))


def _kept(schema: Mapping[str, Any]) -> bool:
    """Whether it is of learners, of names, or of lists."""
    inner = [schema["items"]] if isinstance(schema.get("items"), dict) else schema.get("anyOf", [])
    name = schema.get("type") == "string" and "enum" not in schema and "const" not in schema
    lists = schema.get("items", {}).get("type") == "array" or "$ref" in schema.get("items", {})
    learner = schema.get("$ref", "").endswith("/Learner") or schema.get("type") == "object"
    return learner or name or lists or any(map(_kept, inner))


def drawn(task: Task, rows: int, columns: int, classes: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    spread = np.linspace(2.0, 0.5, columns)
    x = rng.normal(size=(rows, columns)) * spread
    if task is Task.REGRESSION:
        return x, x @ np.linspace(1, -1, columns) + np.sin(x[:, 0]) + 0.1 * rng.normal(size=rows)
    y = np.arange(rows) % max(classes, 1)
    centres = 3 * spread * rng.normal(size=(max(classes, 1), columns))
    return x + centres[y], y.astype(float)


def _values(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        schema = defs[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        default = schema.get("default")
        return st.one_of([_values({"default": default, **option}, defs) for option in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(
            [value for value in schema.get("enum") or [schema["const"]] if value not in OF_OTHER_TARGETS]
        )
    if schema["type"] in NAMED:
        return NAMED[schema["type"]]
    if schema["type"] == "array":
        return st.lists(_values(schema["items"], defs), min_size=3, max_size=3)  # as many as there are classes
    low, high = _bounds(schema)
    if schema["type"] == "integer":
        return st.integers(int(np.ceil(low)), max(int(np.floor(high)), int(np.ceil(low))))
    return st.floats(0, 1).map(functools.partial(_between, low, high, "minimum" in schema, "maximum" in schema))


def _bounds(schema: Mapping[str, Any]) -> tuple[float, float]:
    """Within the bounds, and within two decades of the default: beyond lie fits that take for ever."""
    default = schema.get("default")
    middle = abs(float(default)) if isinstance(default, int | float) and default else 1.0
    whole = schema["type"] == "integer"
    low = schema.get("minimum", schema.get("exclusiveMinimum", -middle) + (1 if whole else 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", np.inf) - (1 if whole else 0))
    return float(low), float(min(high, max(middle * (3 if whole else 100), low)))


def _between(low: float, high: float, with_low: bool, with_high: bool, share: float) -> float:
    """Evenly in the logarithm when the range starts at zero, else evenly; the ends where they belong."""
    if share == 0 and with_low:
        return low
    if share == 1 and with_high:
        return high
    share = min(max(share, 1e-6), 1 - 1e-6)
    return high * 10 ** (-6 * (1 - share)) if low == 0 else low + (high - low) * share


@pytest.fixture(scope="session")
def same_bytes() -> Any:
    def compare(one: Any, other: Any) -> None:
        packed: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        assert state_format.pack(one, "state", packed[0]) == state_format.pack(other, "state", packed[1])
        for name, array in packed[0].items():
            assert (array.dtype, array.shape) == (packed[1][name].dtype, packed[1][name].shape), name
            assert array.tobytes() == packed[1][name].tobytes(), name

    return compare


def cases() -> list[Case]:
    return [Case(entry, task) for entry in catalogue().values() for task in sorted(entry.algorithm.tasks)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", cases(), ids=str)
    if "entry" in metafunc.fixturenames:
        metafunc.parametrize("entry", catalogue().values(), ids=lambda entry: entry.name)


@pytest.fixture(scope="session")
def shape_of_prediction() -> Any:
    def check(case: Case, predicted: Any, rows: int, classes: int | None = None) -> None:
        assert isinstance(predicted, np.ndarray)
        assert len(predicted) == rows
        assert np.isfinite(predicted).all(), "a prediction is a number"
        kind = case.task.record.prediction
        if kind in {PredictionKind.NUMBER, PredictionKind.LOG_DENSITY}:
            assert predicted.shape == (rows,)
            assert predicted.dtype == np.float64
        if kind is PredictionKind.PROBABILITIES:
            assert predicted.ndim == 2
            assert classes is None or predicted.shape[1] == classes
            assert ((predicted >= 0) & (predicted <= 1)).all()
            np.testing.assert_allclose(predicted.sum(axis=1), 1, rtol=1e-12)
        if kind is PredictionKind.LABEL:
            assert predicted.shape == (rows,)
            assert predicted.dtype.kind in "iu"
            assert (predicted >= 0).all()
        if kind is PredictionKind.COORDINATES:
            assert predicted.ndim == 2
            assert predicted.shape[1] >= 1

    return check


@pytest.fixture(scope="session")
def all_cases() -> list[Case]:
    return cases()

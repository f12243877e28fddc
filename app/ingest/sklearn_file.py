"""Models of scikit-learn as the client writes them: JSON with the library's own predictions of probe rows.

scikit-learn has no file format but pickles, and no pickle is read here. `valiant import` reads one where it was made,
with the library that made it, and sends what this module describes.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from app.base.wire import Body
from app.ml.algorithms.imported_linear import ImportedLinear
from app.ml.algorithms.imported_linear import State as LinearState
from app.ml.algorithms.imported_trees import ImportedTrees
from app.ml.algorithms.imported_trees import State as TreeState
from app.ml.contract.algorithm import Matrix, TargetKind, Task, Vector
from app.ml.contract.labels import Label
from app.ml.contract.model_file_options import ALL, ModelFileOptions
from app.ml.models.parsed_model import ParsedColumn, ParsedModel, Probes
from app.ml.numerics.class_probabilities.link_functions import LinkedSums
from app.ml.numerics.trees.foreign_trees import ForeignTree, damaged, flattened, unsupported

Name = Annotated[str, Field(min_length=1, max_length=1000)]
Node = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""Place of a node; of a leaf's children any."""
MOST_CLASSES = 10_000


class WrittenTree(Body):
    """One tree of N nodes, the root first; column -1 at a leaf."""

    output: int = Field(ge=0, lt=MOST_CLASSES)
    column: list[Annotated[int, Field(ge=-1, lt=2**31)]]
    threshold: list[float]
    left: list[Node]
    right: list[Node]
    missing_left: list[bool]
    value: list[float]

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if len({len(part) for part in (self.column, self.threshold, self.left, self.right, self.missing_left)}) > 1:
            raise ValueError("The parts of a tree have several lengths.")
        if len(self.value) != len(self.column):
            raise ValueError("The parts of a tree have several lengths.")
        return self


class Written(Body):
    """Fields of a file, whichever model it holds."""

    format_version: Literal[1]
    library: Annotated[str, Field(max_length=100)]
    estimator: Annotated[str, Field(max_length=200)]
    classifies: bool
    classes: Annotated[list[Label], Field(min_length=2, max_length=MOST_CLASSES)] | None
    """Labels in the order of the outputs; null of a regression."""
    transform: Literal["identity", "sigmoid", "softmax", "exponential", "step"]
    sigmoid: float = Field(1.0, gt=0, le=1e100)
    columns: list[Name] = Field(min_length=1, max_length=10_000)
    base: list[float] = Field(min_length=1, max_length=MOST_CLASSES)
    rows: list[list[float | None]] = Field(min_length=1)
    """Probe rows (n, d); null is missing."""
    sums: list[list[float]]
    """(n, k) before the transform, by the library."""
    predictions: list[list[float]]
    """(n, k) after it."""


class WrittenTrees(Written):
    """A sum of trees."""

    format_name: Literal["valiant-trees"]
    single: bool
    """Inputs are rounded to 32 bits before they are compared."""
    average: bool
    trees: list[WrittenTree] = Field(min_length=1)


class WrittenLinear(Written):
    """Weighted sums."""

    format_name: Literal["valiant-linear"]
    coef: list[list[float]] = Field(min_length=1)
    """(k, d)"""
    fill: list[float] | None
    """(d,) what stands for missing numbers; null: there must be none."""


FILE: TypeAdapter[WrittenTrees | WrittenLinear] = TypeAdapter(
    Annotated[WrittenTrees | WrittenLinear, Field(discriminator="format_name")]
)


def parse(path: Path, _: ModelFileOptions = ALL) -> ParsedModel:
    """Raises ImportUnsupported and InvalidData."""
    try:
        written = FILE.validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(map(str, first["loc"][1:]))  # the first is the format's name
        reason = str(first["msg"]).removeprefix("Value error, ").removesuffix(".")
        raise damaged(f"At /{place}: {reason}. `valiant convert` writes it.") from None
    k, d = len(written.base), len(written.columns)
    if len(set(written.columns)) < d:
        raise unsupported("same_name", "/columns", "Two columns have the same name.")
    if k > 1 and not written.classifies:
        raise unsupported("several_outputs", "/base", "The model predicts several numbers at once.")
    base = np.array(written.base, np.float64)
    if not np.isfinite(base).all():
        raise damaged("A sum begins at what is not finite.")
    rows = _matrix([[np.nan if cell is None else cell for cell in row] for row in written.rows], d)
    probes = Probes(rows, _matrix(written.sums, k), _matrix(written.predictions, k))
    if not len(probes.x) == len(probes.sums) == len(probes.predictions):
        raise damaged("The probe rows and their predictions have several lengths.")
    task = Task.of_target(TargetKind.CLASSES if written.classifies else TargetKind.NUMBERS)
    classes = max(2, k) if written.classifies else 0
    if len(labels := written.classes or ()) != classes:
        raise damaged("It does not name each of its classes, each differently.")
    if isinstance(written, WrittenTrees):
        parts = _of_trees(written, base, classes)
    else:
        parts = _of_weights(written, base, classes)
    named = tuple(labels) if labels else None
    return ParsedModel(
        parts.algorithm, parts.params, parts.state, task, parts.columns, probes, written.library, classes=named
    )


class Parts(NamedTuple):
    """The parts of a model in which trees and weights differ."""

    algorithm: str
    params: LinkedSums
    state: Any
    columns: tuple[ParsedColumn, ...]


def _of_trees(written: WrittenTrees, base: Vector, classes: int) -> Parts:
    d = len(written.columns)
    output = np.array([tree.output for tree in written.trees], np.intp)
    if (output >= base.size).any():
        raise damaged("A tree is added to an output that does not exist.")
    flat = flattened([_tree(tree) for tree in written.trees], d, np.zeros(d, np.intp), single=written.single)
    params = ImportedTrees(**_linked(written), average=written.average)
    return Parts("imported_trees", params, TreeState(flat, output, base, classes), _columns(written.columns))


def _of_weights(written: WrittenLinear, base: Vector, classes: int) -> Parts:
    d, fill = len(written.columns), written.fill or []
    coef = _matrix(written.coef, d)
    if len(coef) != base.size or len(fill) not in {0, d}:
        raise damaged("The parts of the model have several lengths.")
    if not np.isfinite(coef).all() or not np.isfinite(np.array(fill)).all():
        raise damaged("A weight is not finite.")
    columns = _columns(written.columns)
    if fill:
        columns = tuple(column._replace(fill=value) for column, value in zip(columns, fill, strict=True))
    else:
        columns = tuple(column._replace(nullable=False) for column in columns)
    state = LinearState(np.ascontiguousarray(coef.T), base, classes)
    return Parts("imported_linear", ImportedLinear(**_linked(written)), state, columns)


def _columns(names: list[str]) -> tuple[ParsedColumn, ...]:
    return tuple(map(ParsedColumn, names))


def _linked(written: Written) -> dict[str, Any]:
    return {
        "library": "scikit-learn",
        "objective": written.estimator,
        "transform": written.transform,
        "sigmoid": written.sigmoid,
    }


def _matrix(rows: list[list[float]], columns: int) -> Matrix:
    if any(len(row) != columns for row in rows):
        raise damaged(f"A row has not {columns} cells.")
    return np.array(rows, np.float64).reshape(len(rows), columns)


def _tree(tree: WrittenTree) -> ForeignTree:
    n = len(tree.column)
    never, none = np.zeros(n, np.bool_), np.zeros(n, np.intp)
    return ForeignTree(
        np.array(tree.column, np.int32),
        np.array(tree.threshold, np.float64),
        never,
        np.array(tree.left, np.int32),
        np.array(tree.right, np.int32),
        np.array(tree.missing_left, np.bool_),
        np.array(tree.value, np.float64),
        never,
        never,
        none,
        none,
        none[:0],
    )

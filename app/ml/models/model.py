"""A fitted model, and the same model as bytes."""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import AlgorithmNotFound, CorruptModel, NoInterval
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import JSON, Algorithm, Labels, Matrix, Params, Task, Vector
from app.ml.contract.columns import InputColumn
from app.ml.contract.labels import Class
from app.ml.contract.stage_clock import timed
from app.ml.models import (
    background,
    calibrators,
    cluster_description,
    safetensors_format,
    state_format,
    stored_preparation,
)
from app.ml.models.background import NO_BACKGROUND, Background
from app.ml.models.calibrators import CALIBRATED, Calibrators
from app.ml.models.category_checks import demand_categories
from app.ml.models.cluster_description import ClusterDescription
from app.ml.models.conformal import EVERYWHERE, UNCALIBRATED, Calibration, limits_of, method_of, with_intervals, within
from app.ml.models.header import (
    CALIBRATED_FORMAT,
    ENCODED_FORMAT,
    FILLED_FORMAT,
    FORMAT,
    ITEM_FORMAT,
    PROJECTED_FORMAT,
    PROJECTED_MEMBER_FORMAT,
    TEXT_FORMAT,
    header_of,
)
from app.ml.models.member_view import BEHIND, ENCODED, FILLS, LINEARISING
from app.ml.preparation.flags import Flagged
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.projected import Projected
from app.ml.preparation.request import Linearising
from app.ml.preparation.target_transform import turned_back

if TYPE_CHECKING:
    from app.ml.models.contributions import Contributions

LABEL_DTYPES: dict[type, type[np.generic]] = {bool: np.bool_, int: np.int64}


class Predicted(NamedTuple):
    """Predictions of n rows."""

    values: NDArray[Any]
    """regression, density: (n,) numbers; classification: (n,) codes into `classes`; clustering: (n,) labels;
    projection: (n, p) coordinates."""
    probabilities: Matrix | None
    """Classification: (n, k), a column per class."""
    classes: tuple[Class, ...] | None
    flags: tuple[Flagged, ...]
    unknown: Labels | None = None
    """Rows that the model rejects, though it has probabilities."""
    intervals: Matrix | None = None
    """Regression, on request: (n, 2), the lower and the upper end; infinite where nothing bounds it."""
    outputs: Mapping[str, NDArray[Any]] = MappingProxyType({})
    """On request: (n,) or (n, k) each, by the names that the algorithm declares."""
    contributions: "Contributions | None" = None
    """On request: of the columns of the request."""

    def part(self, start: int, stop: int) -> "Predicted":
        """Predictions of these rows, as if there were no others."""

        def within(rows: Labels) -> Labels:
            return rows[(rows >= start) & (rows < stop)] - start

        flags = (flag._replace(rows=within(flag.rows)) for flag in self.flags)
        unknown = None if self.unknown is None else within(self.unknown)
        return self._replace(
            values=self.values[start:stop],
            probabilities=None if self.probabilities is None else self.probabilities[start:stop],
            flags=tuple(flag for flag in flags if flag.rows.size),
            unknown=None if unknown is None or not unknown.size else unknown,
            intervals=None if self.intervals is None else self.intervals[start:stop],
            outputs={name: values[start:stop] for name, values in self.outputs.items()},
            contributions=None if self.contributions is None else self.contributions.part(start, stop),
        )

    @property
    def labels(self) -> pa.Array:
        """(n,) class labels in their type in the table; null: unknown. Only of a classification."""
        unknown = np.zeros(self.values.size, np.bool_)
        if self.unknown is not None:
            unknown[self.unknown] = True
        return pa.array(self.classes).take(pa.array(self.values, mask=unknown))

    @property
    def predictions(self) -> list[Any]:
        """One JSON value a row: class labels in their type in the table (None: unknown), numbers, coordinates."""
        if self.classes is None:
            return self.values.tolist()  # type: ignore[no-any-return]  # at least one dimension, so a list
        result: list[Any] = np.array(self.classes, object)[self.values].tolist()
        for row in () if self.unknown is None else self.unknown.tolist():
            result[row] = None
        return result


@dataclass(frozen=True)
class Model:
    """A fitted algorithm with the preparation it was fitted behind. Immutable; safe to share between threads."""

    name: str
    """Name of the algorithm in the catalogue."""
    task: Task
    params: Params
    state: Any
    preparation: Preparation
    target: str | None
    classes: tuple[Class, ...] | None
    """Class labels by code, in the JSON type of the table's column."""
    receipt: Mapping[str, JSON]
    """Seed, data digest, request, library versions: the same receipt gives the same bytes."""
    linearising: Linearising = "none"
    """The function of the target that was fitted."""
    calibration: Calibration = UNCALIBRATED
    """Errors of a regression on rows that the fit has not seen."""
    limits: tuple[float, float] = EVERYWHERE
    """Least and greatest possible target of a regression; intervals end there."""
    calibrators: Calibrators = ()
    """Maps that the probabilities of a classification pass through, one after the other."""
    clusters: ClusterDescription | None = None
    """Description of the clusters of a clustering; None: it has none, or was trained by an earlier release."""
    background: Background = NO_BACKGROUND
    """Facts of the training rows that contributions start from."""

    @cached_property
    def algorithm(self) -> Algorithm[Any, Any]:
        """Predictions in the target's own units, calibrated probabilities, and outputs by densities of clusters."""
        described = cluster_description.described(find(self.name).algorithm, self.task, self.params, self.clusters)
        bounded = with_intervals(described, self.params, self.calibration)
        return calibrators.calibrated(self.calibrators, within(turned_back(self.linearising, bounded), self.limits))

    @property
    def reading(self) -> Mapping[str, JSON]:
        """Options with which the training data was read, where not the default: its `encoding`, markers of `missing`
        values.
        """
        return self.receipt.get("reading") or {}

    @cached_property
    def plain_numbers(self) -> tuple[str, ...] | None:
        """The inputs, if all are numbers that were written the plain way in the training data; else None."""
        special = self.reading.get("missing") or self.reading.get("decimal") == ","
        special = special or any(column.notation or column.source_kind for column in self.inputs)
        return None if special else self.preparation.numbers

    @property
    def interval(self) -> Callable[[Any, Any, Matrix, float], Matrix]:
        """The function of intervals, as in `Algorithm`, of a regression. Raises NoInterval where there is none."""
        interval = self.algorithm.interval
        if interval is None or not self.task.of_numbers:
            raise NoInterval
        return interval

    @property
    def interval_name(self) -> str:
        """Method of the intervals."""
        return method_of(find(self.name).algorithm, self.params, self.calibration)

    @property
    def inputs(self) -> tuple[InputColumn, ...]:
        return self.preparation.inputs

    @cached_property
    def nbytes(self) -> int:
        """Roughly the memory it holds."""
        document, arrays = _parts(self)
        held = sum(array.nbytes for array in arrays.values()) + state_format.beside(self.state)
        held += state_format.beside(self.calibration.folds) + self.preparation.beside
        return held + 4 * len(safetensors_format.canonical(document))

    def predict(self, table: pa.Table | Matrix, confidence: float | None = None) -> Predicted:
        """Predict every row of a table that has the inputs among its columns, each with the Arrow type of its kind.

        A matrix is taken for the raw one. With `confidence` (in (0, 1)) besides: an interval for every prediction, that
        of the algorithm, else by the errors on rows held out. Raises NoInterval where there is neither.
        """
        return self.predict_raw(table if isinstance(table, np.ndarray) else self.preparation.raw(table), confidence)

    @cached_property
    def label_values(self) -> NDArray[Any] | None:
        """(k,) the class labels as truths, whole numbers or numbers; None: they are texts."""
        kinds = set(map(type, self.classes or ()))
        if kinds == {str}:
            return None
        return np.array(self.classes, LABEL_DTYPES.get(kinds.pop(), np.float64) if len(kinds) == 1 else np.float64)

    def predict_raw(self, raw: Matrix, confidence: float | None = None) -> Predicted:
        """Predictions from the raw matrix (n, p): a column per input; NaN is missing, categories are level codes."""
        prepared, predict, is_known, params, state, classifies, classes = self._used
        flags, x = prepared(raw)
        result = predict(params, state, x)
        intervals = None if confidence is None else self._ends(raw, x, result, confidence)
        if not classifies:
            return Predicted(result, None, None, flags, None, intervals)
        rows = None if is_known is None else np.flatnonzero(~is_known(params, result))
        if rows is None or not rows.size:
            return Predicted(_likeliest(result), result, classes, flags)
        return Predicted(_likeliest(result), result, classes, (*flags, Flagged("unknown", None, rows)), rows)

    def _ends(self, raw: Matrix, x: Matrix, predicted: Vector, confidence: float) -> Matrix:
        """(n, 2) for rows of the raw matrix, whose matrix is x. Ends by fits of folds are widened to the prediction."""
        if not self.calibration.folds:
            return self.interval(self.params, self.state, x, confidence)
        lower, upper = self.interval(self.params, self.state, self.preparation.last_raw(raw), confidence).T
        held = np.clip(predicted, *self.limits)
        return np.column_stack([np.fmin(lower, held), np.fmax(upper, held)])

    @cached_property
    def _used(self) -> tuple[Any, ...]:
        """The parts that a prediction needs, together: to look up one takes as long as to compare a hundred numbers."""
        algorithm, classifies = self.algorithm, self.task.of_classes
        preparation, state = self.preparation, self.state
        return preparation.prepared, algorithm.predict, algorithm.known, self.params, state, classifies, self.classes


def _likeliest(probabilities: Matrix) -> Labels:
    """(n,) of classes that are equally likely the first. Of two numpy compares a column at a time far sooner."""
    if probabilities.shape[1] == 2 < len(probabilities):
        return (probabilities[:, 1] > probabilities[:, 0]).astype(np.intp)
    codes: Labels = probabilities.argmax(1)
    return codes


def digest(blob: bytes | memoryview) -> str:
    """`sha256:` and the hexadecimal hash of the bytes."""
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


@timed("storing")
def encode(model: Model) -> bytes:
    """The model as bytes; equal models give equal bytes."""
    return safetensors_format.write(*_parts(model))


def decode(blob: bytes | memoryview, whose: str = "The model") -> Model:
    """The model again; its arrays are views into `blob`. whose: what messages call it.

    Raises CorruptModel for anything that `encode` did not write, before memory is taken for it, and RetiredFormat for
    models of earlier releases.
    """
    document, arrays = safetensors_format.read(blob)
    header = header_of(document, whose)
    try:
        entry = find(header.algorithm)
        preparation = stored_preparation.unpack(document, arrays)
        model = Model(
            name=header.algorithm,
            task=Task(header.task),
            params=entry.algorithm.params.model_validate(header.parameters),
            state=state_format.unpack(entry.algorithm.state, document["state"], arrays),
            preparation=preparation,
            target=header.target,
            classes=header.classes,
            receipt=header.receipt,
            linearising=LINEARISING.validate_python(document["linearising"]),
            calibration=Calibration.restored(document, arrays),
            limits=limits_of(document.get("limits", [None, None])),
            calibrators=calibrators.unpacked(document, "", arrays, len(header.classes or ())),
            clusters=cluster_description.unpacked(document, arrays, preparation.layout.width),
            background=background.unpack(arrays, preparation.layout.width, len(preparation.inputs)),
        )
        demand_categories((model.state, model.calibration.folds), preparation.layout.levels)
    except AlgorithmNotFound:
        raise CorruptModel("The stored model is of an algorithm this version does not have.") from None
    except (LookupError, TypeError, ValueError, RecursionError):
        raise CorruptModel("The stored model does not fit this version's format.") from None
    return model


def _parts(model: Model) -> tuple[JSON, dict[str, NDArray[Any]]]:
    arrays: dict[str, NDArray[Any]] = {}
    document = {
        "format": FORMAT,
        "algorithm": model.name,
        "task": str(model.task),
        "parameters": model.params.model_dump(mode="json"),
        "target": model.target,
        "classes": None if model.classes is None else list(model.classes),
        **stored_preparation.pack(model.preparation, "preparation", arrays),
        "receipt": dict(model.receipt),
        "linearising": model.linearising,
        "state": state_format.pack(model.state, "state", arrays),
    }
    if model.limits != EVERYWHERE:
        document["limits"] = [limit if math.isfinite(limit) else None for limit in model.limits]
    if any(ENCODED in name for name in arrays):
        document["format"] = ENCODED_FORMAT
    if isinstance(model.preparation, Projected):
        document["format"] = PROJECTED_FORMAT
    if any(name.endswith(FILLS) for name in arrays):
        document["format"] = FILLED_FORMAT
    document |= calibrators.packed(model.calibrators, "", arrays)
    document |= cluster_description.packed(model.clusters, arrays)
    if any(CALIBRATED in name for name in arrays):
        document["format"] = CALIBRATED_FORMAT
    if any(column.strict_levels for column in model.inputs):
        document["format"] = ITEM_FORMAT
    if any(BEHIND in name for name in arrays):
        document["format"] = PROJECTED_MEMBER_FORMAT
    if "texts" in document:
        document["format"] = TEXT_FORMAT
    background.pack(model.background, arrays)
    return document | model.calibration.packed(arrays), arrays

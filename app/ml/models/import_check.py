"""An imported model beside where it comes from: sums of the reference on probe rows, predictions on the user's rows."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from app.base.errors import ImportMismatch, InvalidData
from app.base.faults import Fault
from app.ml.algorithms import imported_linear, imported_onnx, imported_trees
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import codes_of
from app.ml.models.golden import TOLERANCE as OF_GOLDEN_ROWS
from app.ml.models.model import Model, Predicted
from app.ml.models.parsed_model import ParsedModel
from app.ml.numerics.class_probabilities.link_functions import linked

TOLERANCE = {"float32": 1e-6, "float64": 1e-12, "any": OF_GOLDEN_ROWS}
"""Tolerance of predictions, relative to the largest number beside; of an artifact another processor's rounding."""
EPSILON = {"float32": 2.0**-24, "float64": 2.0**-53}
TRANSFORM = 1e-6
"""Tolerance of the transform alone: the reference computes it with 32 bits."""
MODULES: dict[str, Any] = {
    "imported_trees": imported_trees,
    "imported_linear": imported_linear,
    "imported_onnx": imported_onnx,
}
"""Algorithms of imported models, by name."""
AT = "/check/prediction_columns"


def check_probes(parsed: ParsedModel) -> None:
    """Raises ImportMismatch unless sums and predictions of the probe rows are those of the reference.

    Sums of T numbers in another order differ by T roundings of the sum of their absolute values at most.
    """
    x, params, state, module = parsed.probes.x, parsed.params, parsed.state, MODULES[parsed.algorithm]
    x = np.where(np.isnan(x), [np.nan if column.fill is None else column.fill for column in parsed.columns], x)
    bound = 4 * (1 + parsed.terms) * EPSILON[params.arithmetic] * module.magnitudes(state, x)
    sums, theirs = module.sums(params, state, x), parsed.probes.sums
    with np.errstate(invalid="ignore"):
        differences = np.where((sums == theirs) | (np.isnan(sums) & np.isnan(theirs)), 0.0, np.abs(sums - theirs))
    with np.errstate(over="ignore"):
        ours = linked(params, parsed.probes.sums)
    other = ~np.isclose(ours, parsed.probes.predictions, rtol=TRANSFORM, atol=TRANSFORM, equal_nan=True)
    if (rows := np.flatnonzero(~((differences == 0) | (differences <= bound)).all(axis=1) | other.any(axis=1))).size:
        detail = f"{rows.size} of {len(x)} probe rows are predicted otherwise than by {parsed.parser}."
        raise ImportMismatch(detail, faults=[Fault("/file", detail, "probe_rows")])


class Comparison(NamedTuple):
    """Predictions of rows so far, beside the user's own."""

    rows: int = 0
    wrong: int = 0
    worst: float = 0.0
    column: int = 0
    """Place of the column with the largest difference, or the first one with another class; that of the labels is the
    last.
    """
    labels: str = ""
    """The first row of another class: the class there and here."""

    def after(self, model: Model, table: pa.Table, columns: Sequence[str], labels: str | None = None) -> "Comparison":
        """With these rows too. labels: column of the predicted classes, beside those of the predictions.

        Raises InvalidData for columns that hold no predictions of the model.
        """
        predicted, wrong = model.predict(table), np.zeros(table.num_rows, np.bool_)
        worst, column, others = self.worst, self.column, self.labels
        pairs = [*_pairs(model, predicted, table, columns)]
        if labels is not None:
            pairs.append((_our_codes(predicted), _their_codes(model, table, labels)))
            others = others or _first_other(predicted, table, labels, np.flatnonzero(pairs[-1][0] != pairs[-1][1]))
        for place, (ours, theirs) in enumerate(pairs):
            differences = np.abs(ours - theirs) / max(float(np.nanmax(np.abs(theirs), initial=0.0)), 1e-300)
            differences[np.isnan(ours) & np.isnan(theirs)] = 0.0
            differences = np.where(np.isnan(differences), np.inf, differences)
            wrong |= differences > TOLERANCE[getattr(model.params, "arithmetic", "any")]
            if differences.size and differences.max() > worst:
                worst, column = float(differences.max()), place
        return Comparison(self.rows + table.num_rows, self.wrong + int(wrong.sum()), worst, column, others)

    def demand(self, columns: Sequence[str], labels: str | None = None) -> None:
        """Raises ImportMismatch unless all predictions are the same."""
        if self.wrong:
            worst = (
                f"the largest relative difference is {self.worst:.3g}" if np.isfinite(self.worst) else "some have none"
            )
            in_labels = self.column == len(columns)
            name = labels if in_labels else columns[self.column]
            detail = f"{self.wrong} of {self.rows} rows differ in {name!r}; {self.labels if in_labels else worst}."
            pointer = "/check/label_column" if in_labels else f"{AT}/{self.column}"
            raise ImportMismatch(detail, faults=[Fault(pointer, detail, "other_predictions")])


def _first_other(predicted: Predicted, table: pa.Table, name: str, rows: Labels) -> str:
    """The end of a sentence on the first of these rows, or nothing."""
    if not rows.size:
        return ""
    row = int(rows[0])
    theirs, ours = table.column(name)[row].as_py(), predicted.labels[row].as_py()
    return f"the first is {theirs!r} there, and {ours!r} by the probabilities of the model"


def column_counts(model: Model) -> tuple[int, ...]:
    """Numbers of columns in which its predictions may be given."""
    if model.classes is not None:
        return 1, len(model.classes)
    values = model.predict_raw(model.preparation.no_values).values
    return values.shape[1:] or (1,)


def _pairs(
    model: Model, predicted: Predicted, table: pa.Table, columns: Sequence[str]
) -> Iterator[tuple[Vector, Vector]]:
    """Our numbers and theirs (n,), for each column."""
    ours: Matrix = predicted.values if predicted.probabilities is None else predicted.probabilities
    if model.classes is None or len(columns) > 1:
        for values, name in zip(ours.reshape(len(ours), -1).T, columns, strict=True):
            yield values.astype(np.float64), _numbers(table, name)
        return
    codes = _their_codes(model, table, columns[0])
    if np.isnan(codes).any() and len(model.classes) == 2:
        yield ours[:, 1], _numbers(table, columns[0])
    else:
        yield _our_codes(predicted), codes


def _our_codes(predicted: Predicted) -> Vector:
    """(n,) codes of the predicted classes from 1; 0 is no class."""
    codes = predicted.values.astype(np.float64) + 1.0
    rejected = np.isin(np.arange(codes.size), () if predicted.unknown is None else predicted.unknown)
    return np.where(rejected, 0.0, codes)


def _their_codes(model: Model, table: pa.Table, name: str) -> Vector:
    """(n,) codes of the labels in a column from 1; 0 is no label, NaN one that is no class."""
    labels = table.column(name).to_pylist()
    codes = codes_of(labels, model.classes or ()).astype(np.float64) + 1.0  # another code is far away
    codes[[code < 1 and label is not None for code, label in zip(codes, labels, strict=True)]] = np.nan
    return codes


def _numbers(table: pa.Table, name: str) -> Vector:
    cells = table.column(name)
    if not (pa.types.is_floating(cells.type) or pa.types.is_integer(cells.type)):
        raise InvalidData(
            f"The column {name!r} holds no numbers.", faults=[Fault(AT, "It holds no numbers.", "wrong_kind")]
        )
    numbers: Matrix = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers

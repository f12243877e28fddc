"""Predictions of an exported model with numpy alone. Every exported script begins with this text."""

import base64
import csv
import datetime as dt
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

MAX_ROWS = 2000
"""Rows that are computed at a time."""
TOLERANCE = 1e-9
"""Difference of predictions of the golden rows, relative to the largest: another processor rounds otherwise."""


def run_graph(
    steps: Sequence[Any], arrays: Sequence[Any], outputs: Mapping[str, int], columns: Mapping[str, Any]
) -> dict[str, Any]:
    """Outputs by name for columns (n, 1) by name.

    steps: names of columns, places of arrays, and operations [operator, places of inputs among the steps, attributes].
    """
    last: dict[int, int] = {}
    for number, step in enumerate(steps):
        if isinstance(step, list):
            last |= dict.fromkeys(step[1], number)
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for number, step in enumerate(steps):
            if isinstance(step, list):
                operator, inputs, attributes = step
                values.append(OPERATORS[operator](*(values[place] for place in inputs), **attributes))
                for place in inputs:
                    if last[place] == number and place not in outputs.values():
                        values[place] = None
            else:
                values.append(columns[step] if isinstance(step, str) else arrays[step])
    return {name: values[place] for name, place in outputs.items()}


def tree_ensemble(x: Any, *trees: Any, by_tree: bool, whole: bool) -> Any:
    """Sums (n, k) of the values of all trees, or by tree (n, T) the first value of each.

    A row with a missing value may go both ways, in parts; whole: it has NaN then.
    """
    root, column, threshold, left, missing, share, levels, members, values = trees
    out = np.zeros((len(x), len(root) if by_tree else values.shape[1]))
    for number, start in enumerate(root.tolist()):
        ends: list[tuple[int, Any, Any]] = [(start, np.arange(len(x)), None)]
        while ends:
            node, rows, part = ends.pop()
            if column[node] < 0:
                target = slice(number, number + 1) if by_tree else slice(None)
                value = values[left[node], :1] if by_tree else values[left[node]]
                out[rows, target] += value if part is None else np.nan if whole else part[:, None] * value
                continue
            cells, below, first = x[rows, column[node]], int(left[node]), float(threshold[node])
            gone = np.isnan(cells)
            if np.isinf(first):
                right = np.zeros(rows.size, bool)
            elif levels[column[node]]:
                right = ~members[int(first) + np.where(gone, 0, cells).astype(int)]
            else:
                right = cells > first
            ways = [(below, ~gone & ~right, 1.0), (below + 1, ~gone & right, 1.0)]
            if missing[node] >= 0:
                ways.append((below + int(missing[node]), gone, 1.0))
            else:
                ways += [(below, gone, float(share[node])), (below + 1, gone, 1 - float(share[node]))]
            for child, which, weight in reversed(ways):
                if which.any():
                    child_part = part if part is None else part[which]
                    if missing[node] < 0 and which is gone:
                        child_part = np.full(int(which.sum()), weight) if child_part is None else child_part * weight
                    ends.append((child, rows[which], child_part))
    return out


def label_encoder(texts: Any, levels: Any) -> Any:
    """(n, 1) the place of each text among the levels, and their number for any other."""
    places = {level: place for place, level in enumerate(levels.tolist())}
    return np.array([[places.get(str(text), len(places)) for text in row] for row in texts], np.int64).reshape(-1, 1)


def smallest(x: Any, count: Any, axis: int, largest: int, output: int) -> Any:
    """The smallest numbers of each row, ascending, or their columns (output 1); of equal ones the first."""
    places = np.argsort(-x if largest else x, axis=axis, kind="stable")[:, : int(count[0])]
    return places if output else np.take_along_axis(x, places, axis=axis)


def reducing(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda x, axes: function(x, axis=int(axes[0]), keepdims=True)


def _sum_squares(x: Any, axis: int, keepdims: bool) -> Any:
    return np.square(x).sum(axis=axis, keepdims=keepdims)


OPERATORS: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "ArgMax": lambda x, axis, keepdims: x.argmax(axis, keepdims=bool(keepdims)),
    "ArgMin": lambda x, axis, keepdims: x.argmin(axis, keepdims=bool(keepdims)),
    "Cast": lambda x, to: x.astype(to),
    "Concat": lambda *parts, axis: np.concatenate(parts, axis),
    "Cos": np.cos,
    "CumSum": lambda x, axis: x.cumsum(int(axis), dtype=x.dtype),
    "Div": np.divide,
    "Equal": np.equal,
    "Exp": np.exp,
    "Floor": np.floor,
    "Gather": lambda x, places, axis: x.take(places, axis),
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "IsNaN": np.isnan,
    "LabelEncoder": label_encoder,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Log": np.log,
    "MatMul": np.matmul,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Pow": np.power,
    "ReduceMax": reducing(np.max),
    "ReduceMin": reducing(np.min),
    "ReduceSum": reducing(np.sum),
    "ReduceSumSquare": reducing(_sum_squares),
    "Sin": np.sin,
    "Sqrt": np.sqrt,
    "Squeeze": lambda x, axes: x.squeeze(int(axes[0])),
    "Sub": np.subtract,
    "Tanh": np.tanh,
    "TopK": smallest,
    "TreeEnsemble": tree_ensemble,
    "Where": np.where,
}
"""By the names that ONNX has for them."""


def read_arrays(text: str) -> list[Any]:
    """The arrays that `base64.b64encode` of a file of numpy holds, in their order."""
    with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as stored:
        return [stored[f"a{place}"] for place in range(len(stored.files))]


def predict_table(document: Mapping[str, Any], arrays: Sequence[Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """Predictions by the names of the outputs, for a table with a sequence of cells for each input by its name.

    A cell is missing if it is None, NaN or "". Dates are texts of ISO 8601, or seconds since 1970 in UTC.
    """
    absent = [name for name, _ in document["inputs"] if name not in table]
    if absent:
        raise SystemExit(f"The table lacks the columns {', '.join(map(repr, absent))}.")
    columns = {name: _column(name, kind, list(table[name])) for name, kind in document["inputs"]}
    rows = len(next(iter(columns.values())))
    parts = []
    for start in range(0, max(1, rows), MAX_ROWS):
        block = {name: column[start : start + MAX_ROWS] for name, column in columns.items()}
        parts.append(run_graph(document["steps"], arrays, document["outputs"], block))
    return {name: np.concatenate([part[name] for part in parts]) for name in document["outputs"]}


def _column(name: str, kind: str, cells: list[Any]) -> Any:
    """(n, 1) numbers or texts."""
    entries = [None if cell is None or cell == "" or cell != cell else cell for cell in cells]  # noqa: PLR0124 - NaN
    if kind == "text":
        return np.array(["" if cell is None else str(cell) for cell in entries], np.str_).reshape(-1, 1)
    try:
        return np.array([np.nan if cell is None else _number(kind, cell) for cell in entries], float).reshape(-1, 1)
    except ValueError as error:
        raise SystemExit(f"{name}: {error}") from None


def _number(kind: str, cell: Any) -> float:
    if kind == "boolean" and isinstance(cell, str):
        if cell.lower() not in {"true", "false", "1", "0"}:
            raise ValueError("a cell is neither true nor false")
        return float(cell.lower() in {"true", "1"})
    if kind == "datetime" and isinstance(cell, str):
        moment = dt.datetime.fromisoformat(cell)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).total_seconds()
    return float(cell)


def check_golden_rows(document: Mapping[str, Any], arrays: Sequence[Any]) -> int:
    """Their number; raises SystemExit unless they have the predictions that the service gave."""
    golden = document["golden"]
    predictions = predict_table(document, arrays, golden["columns"])
    for name, listed in golden["outputs"].items():
        values, expected = predictions[name], np.array(listed)
        if values.dtype.kind in "US":
            same = bool((values == expected).all())
        else:
            numbers = expected.astype(float)
            size = np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
            same = np.allclose(values, numbers, rtol=TOLERANCE, atol=TOLERANCE * size, equal_nan=True)
        if not same:
            raise SystemExit(f"{name}: the golden rows have other predictions.")
    return len(next(iter(golden["columns"].values())))


def run_script(arguments: Sequence[str], document: Mapping[str, Any], arrays: Sequence[Any]) -> None:
    """Predict the rows of a CSV file, whose first line has the names of the columns; or check the golden rows."""
    if list(arguments) == ["--check"]:
        count = check_golden_rows(document, arrays)
        sys.stdout.write(f"{count} golden rows have the predictions of the service.\n")
        return
    if len(arguments) != 1:
        raise SystemExit(f"usage: python {sys.argv[0]} ROWS.csv > predictions.csv, or --check")
    with open(arguments[0], newline="", encoding="utf-8-sig") as file:  # noqa: PTH123 - a script of few imports
        names, *rows = list(csv.reader(file)) or [[]]
    table = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    predictions = predict_table(document, arrays, table)
    heads: list[str] = []
    columns: list[list[Any]] = []
    for name, values in predictions.items():
        several = values.reshape(len(values), -1)
        suffixes = document["classes"] if name == "predict_proba" else range(several.shape[1])
        heads += [name] if values.ndim == 1 else [f"{name}:{part}" for part in suffixes]
        columns += several.T.tolist()
    writer = csv.writer(sys.stdout)
    writer.writerow(heads)
    writer.writerows(zip(*columns, strict=True))


def document_of(text: str) -> Any:
    """The description of the model: inputs, steps, outputs, classes, golden rows and where it comes from."""
    return json.loads(text)

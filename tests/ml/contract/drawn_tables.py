"""Tables with every role that a column may have, and drawn requests that use some of them."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from app.ml.contract.algorithm import TargetKind
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec

ROWS, GAPS, GROUPS, FEATURES = 60, 12, 12, 3
LABELS = np.array(["a", "b", "c"])
DAY = 86_400_000_000
"""Microseconds."""


class Requested(NamedTuple):
    """A request for a table, both drawn."""

    spec: TrainSpec
    table: pa.Table

    def planned(self, **changes: Any) -> Any:
        spec = self.spec.model_copy(update=changes)
        return plan(spec, sheet(self.table), self.table.num_rows)

    @property
    def labelled(self) -> np.ndarray:
        """Numbers of the rows with a target; all where there is none."""
        if self.spec.target is None:
            return np.arange(self.table.num_rows)
        return np.flatnonzero(self.table["y"].is_valid().to_numpy(zero_copy_only=False))

    def column(self, name: str, rows: Any) -> np.ndarray:
        return self.table[name].take(pa.array(rows)).to_numpy(zero_copy_only=False)


@st.composite
def requests(draw: Any, case: Any) -> Requested:
    """Of what may be combined; at each task the same for all algorithms."""
    kind = case.algorithm.target(case.task)
    weighing = [None, "weights", *(["sigma"] if kind is TargetKind.NUMBERS and case.task.of_numbers else [])]
    body: dict[str, Any] = {"algorithm": {"name": case.entry.name}, "task": case.task, "item": "name"}
    body["features"] = [f"x{j}" for j in range(FEATURES)]
    body["validation"] = {"test_fraction": 0.25, draw(st.sampled_from(["group", "time"])): None}
    (split,) = body["validation"].keys() - {"test_fraction"}
    body["validation"][split] = {"group": "patient", "time": "day"}[split]
    if weigh := draw(st.sampled_from(weighing)):
        body[weigh] = "weight"
    if case.task.of_classes:
        body["class_weight"] = draw(st.sampled_from([None, "balanced", {"a": 3.0}]))
    gaps = kind is not None and draw(st.booleans())
    table = drawn_table(case, draw(st.integers(0, 10**6)), gaps=gaps)
    return Requested(TrainSpec.model_validate(body | ({} if kind is None else {"target": "y"})), table)


def plain(case: Any) -> Requested:
    """A request without any role but that of the target."""
    target: dict[str, Any] = {} if case.algorithm.target(case.task) is None else {"target": "y"}
    body: dict[str, Any] = {
        "algorithm": {"name": case.entry.name},
        "features": ["x0", "x1", "x2"],
        "task": case.task,
        **target,
    }
    return Requested(TrainSpec.model_validate(body), drawn_table(case))


def drawn_table(case: Any, seed: int = 0, *, gaps: bool = False) -> pa.Table:
    rng = np.random.default_rng(seed)
    data = case.data(rows=ROWS, columns=FEATURES, seed=seed)
    kind = case.algorithm.target(case.task)
    y = LABELS[data.codes] if kind is TargetKind.CLASSES else data.y if kind else rng.normal(size=ROWS)
    lost = np.isin(np.arange(ROWS), rng.choice(ROWS, GAPS if gaps else 0, replace=False))
    return pa.table(
        {
            **{f"x{j}": column for j, column in enumerate(data.x.T)},
            "y": pa.array(y, mask=lost),
            "weight": rng.uniform(0.2, 5.0, ROWS),
            "patient": [f"p{code}" for code in rng.integers(0, GROUPS, ROWS)],
            "day": pa.array(DAY * rng.permutation(ROWS), pa.timestamp("us", "UTC")),
            "name": [f"row {i}" for i in rng.permutation(ROWS)],
        }
    )


def sheet(table: pa.Table) -> list[TableColumn]:
    kinds = {pa.string(): ColumnKind.CATEGORICAL, pa.timestamp("us", "UTC"): ColumnKind.DATETIME}
    return [
        TableColumn(name, kinds.get(cells.type, ColumnKind.NUMERIC), cells.null_count, len(cells.unique().drop_null()))
        for name, cells in zip(table.column_names, table.columns, strict=True)
    ]

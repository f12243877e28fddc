"""How long the dry run says that a training will take, beside the CPU time that it takes.

    python tests/benchmarks/plan_seconds.py [most rows] [algorithm] …

Drawn tables of 20 numbers a row, with a target a third of which is noise. A ratio of 1 is a promise kept; within a
factor of 3 is what the plan is for. Compiled code is compiled before.
"""

import sys
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from app.errors import InvalidRequest
from app.ml.plan_cost import BASE_SECONDS
from app.ml.schema import TableColumn
from app.ml.training import TrainSpec, plan, train

ALGORITHMS = (
    "ridge",
    "logistic",
    "knn",
    "decision_tree",
    "random_forest",
    "gradient_boosting",
    "adaboost",
    "bagging",
    "stacking",
)
ROWS = 1_000, 10_000, 50_000, 200_000
COLUMNS = 20
LONG = 100.0
"""Seconds: what is foreseen to take longer is left out."""


def main(most: int, names: list[str]) -> None:
    for name in names or ALGORITHMS:
        for task in "regression", "classification":
            told = list(measured(name, task, most))
            if told:
                sys.stdout.write(f"{name:18} {task:15} {'  '.join(told)}\n")
                sys.stdout.flush()


def measured(name: str, task: str, most: int) -> Iterator[str]:
    for rows in (200, *ROWS):
        table, columns = drawn(rows, task)
        spec = TrainSpec.model_validate({"target": "y", "task": task, "algorithm": {"name": name}})
        try:
            foreseen = plan(spec, columns, rows).seconds
        except InvalidRequest:
            return  # it does not do this task
        if rows > most or foreseen > LONG:
            continue
        begun = time.process_time()
        train(spec, table, columns=columns, data_digest="sha256:0")
        taken = time.process_time() - begun + BASE_SECONDS
        if rows in ROWS:
            yield f"{rows:7,}: {foreseen:7.2f} / {taken:7.2f} = {foreseen / taken:4.2f}"


def drawn(rows: int, task: str) -> tuple[pa.Table, list[TableColumn]]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, COLUMNS))
    y = x[:, 0] + x[:, 1] * x[:, 2] + (x[:, 3] > 0) + rng.normal(size=rows)
    target = np.where(y > 0, "p", "q") if task == "classification" else y
    table = pa.table({**{f"x{j}": column for j, column in enumerate(x.T)}, "y": target})
    kinds = ["numeric"] * COLUMNS + ["categorical" if task == "classification" else "numeric"]
    distinct = [rows] * COLUMNS + [2 if task == "classification" else rows]
    return table, [
        TableColumn(*one) for one in zip(table.column_names, kinds, [0] * (COLUMNS + 1), distinct, strict=True)
    ]


if __name__ == "__main__":
    with threadpool_limits(1):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000, sys.argv[2:])

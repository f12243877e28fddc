"""A table, read once: what every fit of one training draws its rows from."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from app.ml import learners
from app.ml.catalogue import find
from app.ml.contract import Algorithm, Data, Fit, Labels, Learned, Params, Progress, Task, Vector
from app.ml.planning import Plan, TrainSpec, algorithm_name
from app.ml.preparation import Preparation, Preprocessing
from app.ml.raw import Raw, RawColumn
from app.ml.schema import ColumnKind, TableColumn
from app.ml.target import Class, Target, read_target, read_weights


class Material(NamedTuple):
    """Rows are counted among those that have a target; of an unsupervised task, all."""

    task: Task
    algorithm: Algorithm[Any, Any]
    params: Params
    preprocessing: Preprocessing
    raw: Raw
    target: Target
    weights: Vector | None

    @classmethod
    def read(cls, spec: TrainSpec, planned: Plan, table: pa.Table, columns: Sequence[TableColumn]) -> "Material":
        """Raises InvalidData for values that cannot be used, naming them."""
        algorithm = find(algorithm_name(spec)).algorithm
        if spec.target is None:
            target = Target(np.arange(table.num_rows), np.zeros(0), None)
        else:
            target = read_target(table.column(spec.target), spec.target, planned.task)
        weights = None
        if spec.weights is not None:
            weights = read_weights(table.column(spec.weights), spec.weights, target.rows)
        kinds = {column.name: ColumnKind(column.kind) for column in columns}
        return cls(
            task=planned.task,
            algorithm=algorithm,
            params=algorithm.params.model_validate(spec.algorithm.model_dump(exclude={"name"})),
            preprocessing=spec.preprocessing,
            raw=Raw.read(table, [RawColumn(name, kinds[name]) for name in planned.features]),
            target=target,
            weights=weights,
        )

    @property
    def rows(self) -> int:
        return self.target.rows.size

    @property
    def classes(self) -> tuple[Class, ...]:
        return self.target.classes or ()

    def prepare(self, rows: Labels) -> Preparation:
        """Learned from these rows and no other."""
        accepted = learners.accepts(self.algorithm, self.params, self.task)
        return Preparation.fit(self.raw, self.target.rows[rows], self.preprocessing, accepted)

    def data(self, preparation: Preparation, rows: Labels) -> Data:
        """These rows, at least one, as the algorithm gets them."""
        x = preparation.of(self.raw, self.target.rows[rows])
        x.setflags(write=False)  # so that it is taken as it is, not copied
        return Data.of(
            self.task,
            x,
            self.target.y[rows] if self.task.supervised else None,
            classes=len(self.classes),
            weights=None if self.weights is None else self.weights[rows],
            levels=preparation.levels,
            missing=preparation.keeps_missing,
        )

    def fit(self, data: Data, seed: int, progress: Progress) -> tuple[Fit[Any], Learned]:
        fit = self.algorithm.fit(self.params, data, learners.context(seed, progress))
        return fit, Learned(self.algorithm, self.params, fit.state)

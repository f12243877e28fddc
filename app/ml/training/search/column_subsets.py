"""Fits on subsets of the columns of a table, scored on the same folds. Indicators of one column stay together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.base.errors import ValiantError
from app.ml.contract.algorithm import Labels, Vector
from app.ml.evaluation.splits import Split
from app.ml.training.fitting.fit import fit_rows
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.search.column_weights import column_weights
from app.ml.training.search.ensemble_selection import Comparison


class SubsetScore(NamedTuple):
    values: Vector
    """(folds,) metric; empty where a fit was impossible."""
    error: str | None = None


class ColumnSubsets(NamedTuple):
    """The rows and folds that every subset is scored on."""

    training_set: TrainingSet
    """With all columns."""
    spec: TrainSpec
    rows: Labels
    splits: Sequence[Split]
    metric: str

    def of(self, columns: Sequence[int]) -> TrainingSet:
        """Only these columns, places in the table, in its order."""
        raw, spec = self.training_set.raw, without_others(self.spec, [self.names[place] for place in columns])
        return self.training_set.of(spec)._replace(raw=raw.named(spec.features or []))

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.training_set.raw.columns]

    def score(self, columns: Sequence[int]) -> SubsetScore:
        """The metric of fits on these columns, fold by fold."""
        try:
            subset = self.of(columns)
            return SubsetScore(np.array([self.fold_score(subset, split) for split in self.splits]))
        except ValiantError as error:
            return SubsetScore(np.zeros(0), error.detail)

    def fold_score(self, subset: TrainingSet, split: Split) -> float:
        """The metric of the test rows of a fold by a fit of its training rows."""
        fitted = fit_rows(subset, self.rows[split.train], self.spec.seed)
        data = subset.data(fitted.preparation, self.rows[split.test])
        predicted = subset.algorithm.predict(subset.params, fitted.fit.state, data.x)
        return Comparison(subset, self.rows, self.splits, self.metric).value(self.spec, predicted, split.test)

    def constant_scores(self) -> Vector:
        """(folds,) the metric of the mean, or of the shares of the classes, of the training rows of each fold."""
        comparison = Comparison(self.training_set, self.rows, self.splits, self.metric)
        wanted = comparison.wanted(self.spec)
        means = [
            np.repeat(wanted[split.train].mean(axis=0, keepdims=True), split.test.size, 0) for split in self.splits
        ]
        parts = zip(means, self.splits, strict=True)
        return np.array([comparison.value(self.spec, mean, split.test) for mean, split in parts])

    def weights(self, columns: Sequence[int], rows: Labels) -> Vector:
        """(columns,) importances in a fit of these rows, places among those of the training set."""
        subset = self.of(columns)
        return column_weights(subset, fit_rows(subset, rows, self.spec.seed))


def without_others(spec: TrainSpec, names: Sequence[str]) -> TrainSpec:
    """The training with only these columns to learn from, and no options for others."""
    how = spec.preprocessing
    updates: dict[str, Any] = {
        field: {name: value for name, value in by_column.items() if name in names}
        for field, by_column in (("imputation", how.imputation), ("dates", how.dates))
        if isinstance(by_column, dict)
    }
    preprocessing = how.model_copy(update=updates)
    return spec.model_copy(update={"features": [*names], "preprocessing": preprocessing})

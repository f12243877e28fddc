"""An ensemble from a search: its candidates have predicted rows that they had not seen, so that it can be evaluated.

Members are chosen by the squared error of numbers, or of class probabilities (Brier), out of fold: no
prediction that takes part comes from a model which has learned the row (LION 11). What chooses also flatters: therefore
every fold also evaluates an ensemble that the other folds alone have chosen, beside the candidate of their choice.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.wire import Wire
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.catalogue.nested import meaning
from app.ml.contract.algorithm import Inputs, Labels, Matrix, Size, Vector
from app.ml.evaluation.evaluation import Evaluation, of_classes, of_numbers
from app.ml.evaluation.splits import Split
from app.ml.numerics.ensembles.greedy_selection import TIE, diversity, selected
from app.ml.preparation.target_transform import carried, in_units
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.metric_value import MEASURES, Metric, fold_mean
from app.ml.statistics.resampling import Rows
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet

MOST = 50
"""Candidates whose predictions are kept, the best so far: as many as may sit on a committee."""
NUMBERS = 1 << 22
"""Limit on the numbers of all predictions that are kept (32 MiB)."""


class EnsembleMember(Wire):
    """Member of an ensemble."""

    candidate: int = Field(description="Place in the list of candidates, from 0.")
    weight: int = Field(description="Number of times that it was chosen.")


class Ensemble(Wire):
    """Candidates whose average predicts unseen rows better than the best of them alone."""

    algorithm: dict[str, Any] = Field(description="A committee of them: train it by sending this as `algorithm`.")
    preprocessing: dict[str, Any] = Field(
        description="Preprocessing that the members share; send it along with a training of the ensemble."
    )
    members: list[EnsembleMember] = Field(description="Most weight first.")
    diversity: float | None = Field(
        None, description="The share of the members' squared error that averaging takes away: their spread about it."
    )
    validation: Metric = Field(description="Mean over the folds; the same rows have chosen the members: it flatters.")
    expected: Metric = Field(description="The same of ensembles chosen by the other folds alone: what to expect.")
    gain: Metric = Field(
        description="Gain over the one candidate that the other folds would have chosen, fold by "
        "fold, with the interval of the difference."
    )
    evidence: str = Field(description="Evidence behind the metrics: one sentence with rows, folds and seed.")


class Contender(NamedTuple):
    place: int
    """Among the candidates."""
    spec: TrainSpec
    cost: Vector
    """(folds,) its metric, the lower the better."""
    predictions: NDArray[np.float64]
    """(n,) or (n, k) out of fold, of the function of the target that was fitted."""


class Comparison(NamedTuple):
    """The rows that every candidate has predicted, and how."""

    training_set: TrainingSet
    rows: Labels
    splits: Sequence[Split]
    metric: str

    @property
    def room(self) -> int:
        """Candidates whose predictions can be kept; fewer than two are of no use."""
        supervised = self.training_set.task.supervised and self.training_set.times is None  # all rows are predicted
        return min(MOST, NUMBERS // (self.rows.size * max(1, len(self.training_set.classes)))) if supervised else 0

    def value(self, spec: TrainSpec, predictions: NDArray[np.float64], rows: Labels) -> float:
        """The metric of predictions of these rows, places among `rows`; NaN where undefined."""
        target, uncounted = self.training_set.target, Rows(Resamples.none(rows.size))
        if self.training_set.task.of_classes:
            truth = np.asarray(target.codes)[self.rows[rows]]
            result = of_classes(
                truth,
                predictions.argmax(axis=1),
                predictions,
                uncounted,
                classes=self.training_set.classes,
                means=meaning(find(spec.algorithm.name).algorithm, spec.algorithm, self.training_set.task),
            )
        else:
            in_target_units = in_units(spec.preprocessing.target, predictions)
            result = of_numbers(target.y[self.rows[rows]], in_target_units, uncounted)
        return value(result, self.metric)

    def wanted(self, spec: TrainSpec) -> NDArray[np.float64]:
        """(n,) or (n, k) the predictions wanted, in the units in which a committee averages them."""
        if self.training_set.task.of_numbers:
            return carried(spec.preprocessing.target, self.training_set.target.y[self.rows])
        codes = np.asarray(self.training_set.target.codes)[self.rows]
        one_hot: Matrix = np.eye(len(self.training_set.classes))[codes]
        return one_hot


def value(evaluation: Evaluation, metric: str) -> float:
    """The metric of all rows; NaN where undefined."""
    values = [measured.value for measured in evaluation.metrics if measured.name == metric and measured.label is None]
    return np.nan if not values or values[0] is None else values[0]


def with_one_more(contenders: Sequence[Contender], contender: Contender, room: int) -> list[Contender]:
    """At most so many, the best first, of those with a prediction of every row."""
    sound = (
        contender.predictions.size and np.isfinite(contender.cost).all() and np.isfinite(contender.predictions).all()
    )
    return sorted(
        [*contenders, *([contender] if sound else [])], key=lambda ranked: (ranked.cost.mean(), ranked.place)
    )[:room]


def ensemble(contenders: Sequence[Contender], comparison: Comparison, *, fold_models: bool) -> Ensemble | None:
    """The average to offer; None where none is better than the best alone.

    contenders: the best first. fold_models: of each member the fits without one of the folds, not one fit of all rows.
    """
    pool = _alike(contenders, comparison.training_set)
    if not pool or (len(pool) < 2 and not fold_models):
        return None
    wanted = comparison.wanted(pool[0].spec)
    grams = np.stack([_gram(pool, wanted, split.test) for split in comparison.splits])
    cost, better = np.stack([contender.cost for contender in pool]), MEASURES[comparison.metric].better
    counts = selected(grams.sum(axis=0), 0)
    validation = np.array([_measured(pool, counts, comparison, split.test) for split in comparison.splits])
    several = np.count_nonzero(counts) > 1
    if not (several or fold_models) or (several and not _lower(-better * validation, cost[0])):
        return None
    expected, alone = _anew(pool, grams, cost, comparison)
    order = [place for place in np.argsort(-counts, kind="stable").tolist() if counts[place]]
    spread = diversity(grams.sum(axis=0), counts)
    return Ensemble(
        algorithm=_committee([pool[place].spec for place in order], counts[order], len(grams) if fold_models else None),
        preprocessing=pool[0].spec.preprocessing.model_dump(mode="json"),
        members=[EnsembleMember(candidate=pool[place].place, weight=int(counts[place])) for place in order],
        diversity=None if np.isnan(spread) else spread,
        validation=fold_mean(comparison.metric, validation),
        expected=fold_mean(comparison.metric, expected),
        gain=fold_mean(f"{comparison.metric}_difference", alone + better * expected),
        evidence=f"Chosen from the {len(pool)} best candidates that see the columns alike, by their predictions of "
        f"{comparison.rows.size} training rows in {len(comparison.splits)} folds, each by fits of the other folds.",
    )


def _alike(contenders: Sequence[Contender], training_set: TrainingSet) -> list[Contender]:
    """Those that can sit on a committee with the first, and see there what they have seen here."""

    def seen(contender: Contender) -> Any:
        return contender.spec.preprocessing, training_set.of(contender.spec).left_alone

    return [
        contender
        for contender in contenders
        if seen(contender) == seen(contenders[0]) and not is_refused(contender.spec, training_set)
    ]


def is_refused(spec: TrainSpec, training_set: TrainingSet) -> bool:
    """True if the candidate cannot be a member of a committee."""
    entry, kinds = find("committee"), {column.name: str(column.kind) for column in training_set.raw.columns}
    alone = entry.algorithm.params.model_validate({"estimators": [spec.algorithm.model_dump(mode="json")]})
    inputs = Inputs(kinds, Size(training_set.rows, len(kinds), len(training_set.classes)))
    return bool(spec.preprocessing.text) or any(nested.faults(entry.algorithm, alone, training_set.task, "", inputs))


def _gram(pool: Sequence[Contender], wanted: NDArray[np.float64], rows: Labels) -> NDArray[np.float64]:
    """(m, m) products of errors."""
    errors = np.stack([(contender.predictions[rows] - wanted[rows]).ravel() for contender in pool])
    return errors @ errors.T


def _measured(pool: Sequence[Contender], counts: Labels, comparison: Comparison, rows: Labels) -> float:
    total = sum(count * pool[place].predictions[rows] for place, count in enumerate(counts.tolist()) if count)
    average = np.asarray(total) / counts.sum()
    if average.ndim == 2:
        average /= average.sum(axis=1, keepdims=True)
    return comparison.value(pool[0].spec, average, rows)


def _anew(
    pool: Sequence[Contender], grams: NDArray[np.float64], cost: Matrix, comparison: Comparison
) -> tuple[Vector, Vector]:
    """(folds,) the metric of the ensemble, and (folds,) the cost of the candidate, that the other folds choose."""
    measured, alone = [], []
    for fold, split in enumerate(comparison.splits):
        others = np.arange(len(comparison.splits)) != fold
        first = int(cost[:, others].mean(axis=1).argmin())
        measured.append(_measured(pool, selected(grams[others].sum(axis=0), first), comparison, split.test))
        alone.append(cost[first, fold])
    return np.array(measured), np.array(alone)


def _lower(cost: Vector, than: Vector) -> bool:
    return bool(cost.mean() < than.mean() - TIE * abs(than.mean()))


def _committee(specs: Sequence[TrainSpec], counts: Labels, folds: int | None) -> dict[str, Any]:
    return {
        "name": "committee",
        "estimators": [spec.algorithm.model_dump(mode="json") for spec in specs],
        "estimator_weights": counts.tolist(),
        **({"cv": folds} if folds else {}),
    }

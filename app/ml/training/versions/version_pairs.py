"""Pairs of model versions on the same rows: differences of a metric, or agreement of two clusterings."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Task
from app.ml.evaluation.cluster_agreement import between
from app.ml.evaluation.paired_differences import better, difference, with_draws
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.metric_value import Metric
from app.ml.statistics.resampling import Rows
from app.ml.training.versions.table_evaluation import EvaluatedModel


class VersionPair(Wire):
    """Two versions on the same rows."""

    first: int = Field(description="Index of the first version in `versions`, from 0.")
    second: int = Field(description="Index of the second version in `versions`, from 0.")
    difference: Metric | None = Field(
        None,
        description="Metric of the first version less that of the second, with a paired interval: both are drawn on "
        "the same resamples of rows. The interval is null where no row makes a difference. Null for clusterings.",
    )
    better: int | None = Field(
        None,
        description="Index in `versions` of the better version of the pair. Null: the interval holds 0 or is null, so "
        "that these rows do not distinguish the two, or the versions are clusterings.",
    )
    agreement: list[Metric] = Field(
        [],
        description="Agreement of two clusterings: adjusted Rand index, normalised mutual information, and variation "
        "of information in nats, a distance. Empty for versions that predict a target.",
    )


def metric_of(task: Task, evaluated: Sequence[EvaluatedModel]) -> str:
    """The metric that ranks models of the task, where all versions have it; else accuracy."""
    return task.record.measure if all(task.record.measure in model.row_values for model in evaluated) else "accuracy"


def differences(metric: str, evaluated: Sequence[EvaluatedModel], rows: Rows) -> Iterator[VersionPair]:
    """Differences of the metric of every pair, each version drawn once."""
    drawn = [with_draws(metric, model.row_values[metric], rows) for model in evaluated]
    for first, second in combinations(range(len(drawn)), 2):
        gap = difference(metric, drawn[first], drawn[second], evaluated[0].rows.size)
        place = better(metric, gap)
        chosen = None if place is None else (first, second)[place]
        yield VersionPair(first=first, second=second, difference=gap, better=chosen)


def agreements(evaluated: Sequence[EvaluatedModel], draws: Resamples) -> Iterator[VersionPair]:
    """Agreement of every pair of clusterings."""
    for first, second in combinations(range(len(evaluated)), 2):
        metrics = between(evaluated[first].predicted, evaluated[second].predicted, draws)
        yield VersionPair(first=first, second=second, agreement=metrics)

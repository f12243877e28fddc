"""Metrics that may rank the candidates of a search, and criteria that need fits of their own instead of those of folds.

A criterion of the training rows takes one fit of all of them, as the report of the chosen candidate does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Task, Vector
from app.ml.contract.task import PredictionKind
from app.ml.evaluation.splits import Split
from app.ml.statistics.metric_value import MEASURES
from app.ml.training.fitting.cluster_criteria import REFERENCES, gap, stability
from app.ml.training.fitting.fit import evaluate_training_rows, fit_rows, predict_training_rows
from app.ml.training.fitting.structural_risk import STRUCTURAL_RISK, capacity_faults, structural_risk
from app.ml.training.rows.training_set import TrainingSet

Q = "q"
"""The probability that chance alone makes χ² as large, of a fit of all training rows (LION 5.2.1)."""


class Criterion(NamedTuple):
    values: Callable[[TrainingSet, Labels, Sequence[Split], int], Vector]
    """(folds,) or (1,) of a training set, rows of it, folds of these, and a seed."""
    ranks: PredictionKind
    """Predictions of the models that it ranks."""
    higher: bool = True
    """True if the higher is better."""
    fits: int = 0
    """For each fold; 0: one in all."""


def _of_training_rows(
    name: str, training_set: TrainingSet, rows: Labels, _splits: Sequence[Split], seed: int
) -> Vector:
    """(1,) the metric of one fit of all these rows on them; NaN where it has none."""
    fitted = fit_rows(training_set, rows, seed)
    metrics = evaluate_training_rows(fitted, predict_training_rows(fitted), None).metrics
    values = [metric.value for metric in metrics if metric.name == name and metric.value is not None]
    return np.array(values or [np.nan])


def _structural(training_set: TrainingSet, rows: Labels, _splits: Sequence[Split], seed: int) -> Vector:
    """(4,) the bound, and the three parts of `Risk`."""
    risk = structural_risk(training_set, rows, seed)
    return np.array([risk.bound, *risk])


CRITERIA: Mapping[str, Criterion] = {
    "stability": Criterion(stability, PredictionKind.LABEL, fits=1),
    "gap": Criterion(gap, PredictionKind.LABEL, fits=1 + REFERENCES),
    "cophenetic_correlation": Criterion(partial(_of_training_rows, "cophenetic_correlation"), PredictionKind.LABEL),
    "bic": Criterion(partial(_of_training_rows, "bic"), PredictionKind.LOG_DENSITY, higher=False),
    "aic": Criterion(partial(_of_training_rows, "aic"), PredictionKind.LOG_DENSITY, higher=False),
    STRUCTURAL_RISK: Criterion(_structural, PredictionKind.PROBABILITIES, higher=False),
}
INSTEAD = "take silhouette, davies_bouldin, stability or gap."
OF_MAPS = "take trustworthiness, continuity or stress."
REFUSED = {
    "inertia": f"inertia falls with every further cluster: {INSTEAD}",
    "mean_inertia": f"mean_inertia falls with every further cluster: {INSTEAD}",
    "purity": "purity rises with every further cluster: take adjusted_rand or adjusted_mutual_information.",
    "normalized_mutual_information": "normalized_mutual_information rises with more clusters, as chance does: take "
    "adjusted_mutual_information or adjusted_rand.",
    "reconstruction_error": f"reconstruction_error falls with every further component: {OF_MAPS}",
    "explained_variance": f"explained_variance rises with every further component: {OF_MAPS}",
}
"""Metrics that further clusters or components improve, with the reason why each cannot choose their number."""
COMPARING = frozenset({"adjusted_rand", "adjusted_mutual_information"})
"""Metrics that need classes to compare clusters with."""
PLURALS = {
    PredictionKind.NUMBER: "regressions",
    PredictionKind.PROBABILITIES: "classifications",
    PredictionKind.LABEL: "clusterings",
    PredictionKind.COORDINATES: "projections",
    PredictionKind.LOG_DENSITY: "densities",
}
NAMES = (*MEASURES, *(name for name in CRITERIA if name not in MEASURES), Q)
"""Names of the metrics that can rank candidates."""


def metric_faults(
    metric: str | None, task: Task, algorithms: Iterable[str], *, compared: bool, texts: bool
) -> Iterator[str]:
    """Why this metric cannot rank the candidates of these algorithms. compared, texts: as for `metric_fault`."""
    if fault := metric_fault(metric, task, compared=compared, texts=texts):
        yield fault
    elif metric == STRUCTURAL_RISK:
        yield from capacity_faults(algorithms)


def metric_fault(metric: str | None, task: Task, *, compared: bool, texts: bool = False) -> str | None:
    """Why this metric cannot rank this task. compared: whether the request names classes for clusters. texts:
    whether it learns from texts, which have no distances.
    """
    if texts and task.labels and metric not in {"stability", *COMPARING}:
        return f"Clusterings of texts are ranked by stability, {' or '.join(sorted(COMPARING))}: name one of them."
    if metric is None or metric == Q:
        return None
    ranks = _ranked_predictions(metric)
    if metric in REFUSED and metric not in MEASURES:
        ranks = PredictionKind.LABEL
    if ranks is not None and ranks is not task.record.prediction:
        return f"{metric} ranks {PLURALS[ranks]} only."
    if metric in COMPARING and not compared:
        return f"{metric} compares clusters with classes: name their column in target."
    return REFUSED.get(metric)


def ranked_task(metric: str | None) -> Task | None:
    """The task with a target whose predictions the metric ranks; None for a metric of others, or of several."""
    ranks = PredictionKind.NUMBER if metric == Q else None if metric is None else _ranked_predictions(metric)
    return next((task for task in Task if task.supervised and task.record.prediction is ranks), None)


def _ranked_predictions(metric: str) -> PredictionKind | None:
    if metric in CRITERIA:
        return CRITERIA[metric].ranks
    return MEASURES[metric].of if metric in MEASURES else None


def of_all_rows(metric: str) -> bool:
    """True if the metric is that of one fit of all training rows, not of folds."""
    return metric == Q or (metric in CRITERIA and not CRITERIA[metric].fits)


def fits(metric: str | None, folds: int) -> int:
    """Fits of each candidate."""
    if metric is None or metric not in CRITERIA:
        return 1 if metric == Q else folds
    return max(1, folds * CRITERIA[metric].fits)


def higher_is_better(metric: str) -> bool:
    if metric in CRITERIA:
        return CRITERIA[metric].higher
    return metric == Q or MEASURES[metric].better > 0

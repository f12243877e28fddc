"""Metrics of predictions beside the truth, with error bars, and the form in which they travel."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.wire import Wire
from app.ml.catalogue.nested import PLAIN, Meaning
from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.contract.labels import Class
from app.ml.contract.relations import Meaning as Relation
from app.ml.contract.task import DESCRIPTION as TASK
from app.ml.contract.task import PredictionKind
from app.ml.evaluation import auc
from app.ml.evaluation import metrics as measures
from app.ml.evaluation.baselines import Baseline
from app.ml.evaluation.cluster_agreement import agreement
from app.ml.evaluation.cluster_metrics import clustering, related, sizes
from app.ml.evaluation.confusion_matrix import ConfusionMatrix
from app.ml.evaluation.constant_predictions import Constant, ConstantClass, ConstantNumber
from app.ml.evaluation.costs import CostReport, Costs, cost_report
from app.ml.evaluation.decisions import decisions
from app.ml.evaluation.density_metrics import information_criteria
from app.ml.evaluation.deviances import response_loss
from app.ml.evaluation.predictions import Predictions
from app.ml.evaluation.projection_metrics import retained_metrics
from app.ml.evaluation.regression_plots import over_predictions
from app.ml.evaluation.reliability import Bins, class_reliability
from app.ml.evaluation.reliability_curve import ClassReliability
from app.ml.evaluation.report import RejectionCurve, ReportCurve
from app.ml.evaluation.residuals import Residuals, residuals
from app.ml.evaluation.tree_metrics import cophenetic
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.metric_value import Metric
from app.ml.statistics.resampling import Rows


class Evaluation(NamedTuple):
    """Metrics, curves and residuals of a model on some rows. Empty without rows."""

    metrics: list[Metric]
    confusion_matrix: ConfusionMatrix | None = None
    curves: list[ReportCurve] = []
    residuals: Vector = np.zeros(0)
    """(n,) of a regression: √w·(y − prediction)."""
    rejection: RejectionCurve | None = None
    cost: CostReport | None = None
    reliability: list[ClassReliability] | None = None
    baselines: list[Baseline] = []
    """Constant predictions on the same rows, where the evaluation was given one."""
    rejected: int = 0
    """Number of rows that the model rejects; the metrics take its most probable class."""

    def doubts(self, rows: str) -> list[str]:
        """Warnings about them. rows: their name in the sentences."""
        messages = "the model assigns no class; its most probable class was taken."
        return [f"To {self.rejected} {rows} {messages}"] if self.rejected else []

    def as_fields(self, rows: Labels) -> dict[str, Any]:
        """Its fields in a `EvaluationReport`. rows: (n,) the names of the rows."""
        return {
            "metrics": self.metrics,
            "confusion_matrix": self.confusion_matrix,
            "curves": self.curves,
            "rejection": self.rejection,
            "costs": self.cost,
            "residuals": residuals("evaluation", rows, self.residuals),
        }


class EvaluationReport(Wire):
    """Evaluation of predictions on rows."""

    task: str = Field(description=TASK)
    rows: int = Field(description="Number of evaluated rows.")
    metrics: list[Metric] = Field(description="Metrics, each with its confidence interval.")
    confusion_matrix: ConfusionMatrix | None = Field(
        None, description="Counts of rows by true and predicted class; null where there are no classes."
    )
    curves: list[ReportCurve] = Field([], description="Curves of the model, such as ROC and training curves.")
    rejection: RejectionCurve | None = Field(
        None, description="Accuracy of the accepted rows for each threshold; null where there are no probabilities."
    )
    costs: CostReport | None = Field(None, description="Costs of the predictions; null where no cost matrix was given.")
    residuals: Residuals | None = Field(
        None, description="Residuals of a regression: their spread, outliers and normality; null for other tasks."
    )


class ClassOptions(NamedTuple):
    """Further options of the evaluation of a classification."""

    examples: int = 0
    """Rows named in every cell of the confusion matrix."""
    numbers: Labels | None = None
    """(n,) what the rows are called; absent: 0 … n-1."""
    costs: Costs | None = None
    threshold: float | None = None
    """Smallest probability of the second of two classes with which it is predicted; None: the most probable class."""
    bins: Bins | None = None
    """Bins of reliability curves; None: no such curves."""


NO_OPTIONS = ClassOptions()
FOR_REPORT = ClassOptions(bins=Bins())
"""Options of the test rows of a report."""
EXAMPLES = 20
"""Rows named in every cell of the confusion matrix, unless a request names another number."""


def evaluate(
    data: Data,
    predicted: Predictions,
    classes: Sequence[Class],
    rng: np.random.Generator | None,
    *,
    groups: Labels | None = None,
    examples: int = 0,
    bins: Bins | None = None,
    constant: Constant | None = None,
) -> Evaluation:
    """Metrics of predictions for the rows of `data`, whoever made them; without error bars if there is no `rng`.

    classes: the label of each class code, in order; empty for other tasks. groups: (n,) codes of groups of rows that
    are alike: error bars are by groups then. examples: rows named in every cell of the
    confusion matrix, by their numbers in the dataset. bins: those of reliability curves; None: no such curves.
    constant: predictions to compare with; None: none.
    """
    if not len(data.x):
        return Evaluation([])
    rows, values = Rows(_draws(data, rng, groups)), predicted.values
    match data.task.record.prediction:
        case PredictionKind.PROBABILITIES:
            assigned, accepted, means = values.argmax(axis=1), predicted.accepted, predicted.means
            named = ClassOptions(examples, data.numbers, bins=bins)
            evaluation = of_classes(
                data.codes, assigned, values, rows, classes=classes, options=named, accepted=accepted, means=means
            )
            if not isinstance(constant, ConstantClass):
                return evaluation
            chances = None if means.degrees else values
            return evaluation._replace(baselines=constant.compare(data.codes, assigned, chances, rows, classes))
        case PredictionKind.NUMBER:
            left = np.sqrt(data.weights) * (data.y - values)
            evaluation = of_numbers(data.y, values, rows, predicted.means)._replace(residuals=left)
            if not isinstance(constant, ConstantNumber):
                return evaluation
            return evaluation._replace(baselines=constant.compare(data.y, values, rows))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is reported as undefined
        return Evaluation(_without_target(data, predicted, rows.draws))


def _without_target(data: Data, predicted: Predictions, draws: Resamples) -> list[Metric]:
    match data.task.record.prediction:
        case PredictionKind.LABEL:
            return [*_of_clusters(data, predicted, draws)]
        case PredictionKind.COORDINATES if _without_distances(data):
            return []
        case PredictionKind.COORDINATES:
            return [*_of_projection(data, predicted, draws), *retained_metrics(data, predicted.values, draws)]
        case PredictionKind.LOG_DENSITY:
            free, values = predicted.free_parameters, predicted.values
            criteria = [] if free is None else information_criteria(values, free, draws)
            return [measures.mean("log_density", values, draws), *criteria]
    return []


def _of_clusters(data: Data, predicted: Predictions, draws: Resamples) -> Iterator[Metric]:
    """Beside the distances of their training rows, and beside classes that the fit has not seen."""
    if data.square is not None:
        yield from related(data.square, predicted.values, draws)
    elif predicted.centres is not None:
        yield from clustering(data.x, predicted.values, predicted.centres, draws)
    else:
        yield from sizes(predicted.values)
    if predicted.joined is not None:
        yield cophenetic(predicted.joined, draws)
    if predicted.reference is not None:
        yield from agreement(predicted.values, predicted.reference, draws)


def _of_projection(data: Data, predicted: Predictions, draws: Resamples) -> Iterator[Metric]:
    """Beside rows that it restores, and beside classes that it learns from."""
    if predicted.restored is not None:
        yield from measures.projection(data.x, predicted.restored, predicted.origin, draws)
    if data.targets.shape[1]:
        yield measures.separation(predicted.values, data.codes, data.targets.shape[1], draws)


def _without_distances(data: Data) -> bool:
    """True if the rows have neither columns nor dissimilarities: a map of them has no distances to keep."""
    relations = data.relations
    return data.by_item or (
        relations is not None and relations.square is not None and relations.meaning != Relation.DISSIMILARITY
    )


def _draws(data: Data, rng: np.random.Generator | None, groups: Labels | None) -> Resamples:
    return Resamples.none(len(data.x)) if rng is None else Resamples.of(len(data.x), rng, groups)


def of_numbers(truth: Vector, predicted: Vector, rows: Rows, means: Meaning = PLAIN) -> Evaluation:
    """Evaluation of predictions (n,) of a regression."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is reported as undefined
        metrics = measures.regression(truth, predicted, rows.draws, rows.weights)
        if means.through_origin:
            metrics.append(measures.uncentred_r2(truth, predicted, rows))
        if means.metric is not None:
            metrics.append(response_loss(truth, predicted, means.metric, rows))
        left = (truth - predicted) * (1.0 if rows.weights is None else np.sqrt(rows.weights))
        return Evaluation(metrics, curves=over_predictions(truth, predicted), residuals=left)


def of_classes(
    truth: Labels,
    assigned: Labels,
    probabilities: Matrix | None,
    rows: Rows,
    *,
    classes: Sequence[Class],
    options: ClassOptions = NO_OPTIONS,
    accepted: NDArray[np.bool_] | None = None,
    means: Meaning = PLAIN,
) -> Evaluation:
    """Evaluation of assigned class codes (n,), and of the probabilities (n, k) where there are any.

    accepted: (n,) false where the model rejects the row; the metrics take its most probable class, and two
    more are of the others.
    """
    draws, weights, costs = rows.draws, rows.weights, options.costs
    seen = measures.confusion(truth, assigned, classes, numbers=options.numbers, examples=options.examples)
    cost = None if costs is None else cost_report(truth, assigned, probabilities, rows, classes=classes, costs=costs)
    if means.degrees and cost is not None:
        cost = cost.model_copy(update={"cost": cost.cost.model_copy(update={"note": measures.NO_PROBABILITIES})})
    if probabilities is None:
        return Evaluation(decisions(truth, assigned, classes, draws, weights), seen, cost=cost)
    bins = None if means.degrees else options.bins
    top = probabilities[np.arange(truth.size), assigned]
    chosen = [] if accepted is None or accepted.all() else measures.selective(assigned == truth, accepted, rows)
    metrics = measures.classification(
        truth, probabilities, classes, draws, weights, assigned=assigned, degrees=means.degrees
    )
    return Evaluation(
        metrics=[*metrics, *chosen],
        confusion_matrix=seen,
        curves=auc.curves(truth, probabilities, classes, weights),
        rejection=measures.rejection(top, assigned == truth, len(classes), rows) if len(classes) > 1 else None,
        rejected=0 if accepted is None else int((~accepted).sum()),
        cost=cost,
        reliability=None if bins is None else class_reliability(truth, probabilities, classes, rows, bins),
    )

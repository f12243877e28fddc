"""The judgement of a fit: figures with error bars, train beside test, means over folds.

A training run uses it so:

    rng = np.random.Generator(np.random.PCG64(seed))
    split = holdout(n, validation.test_fraction, rng, codes)          # app.ml.evaluation.splits; codes only for classes
    … fit on data.take(split.train) …
    test = evaluate(learned, data.take(split.test), train, classes, rng)
    seen = evaluate(learned, train, train, classes, rng)
    gaps(seen.figures, test.figures)
    across_folds([evaluate(…).figures for each split of kfold(…)])    # Report.cross_validation

`learned` is a `contract.Learned(algorithm, params, state)`.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import Data, Labels, Learned, Matrix, Vector
from app.ml.contract.labels import Class
from app.ml.contract.task import PredictionKind
from app.ml.evaluation import metrics as measures
from app.ml.evaluation import ranking
from app.ml.evaluation.costs import CostReport, Costs, cost_report
from app.ml.evaluation.plots import over_predictions
from app.ml.evaluation.report import ConfusionMatrix, Gap, RejectionCurve, ReportCurve
from app.ml.evaluation.residuals import Residuals, residuals
from app.ml.nested import PLAIN, Meaning, meaning
from app.ml.statistics.figures import MEASURES, Figure, fold_mean, like, resample_mean, shifted
from app.ml.statistics.intervals import Resamples, ratio
from app.ml.statistics.resampling import Rows
from app.wire import Body, Wire


class Validation(Body):
    """Validation of the model."""

    method: Literal["holdout", "kfold", "loo", "bootstrap"] = Field(
        "holdout",
        description="Validation on the training rows, besides the test rows: in K folds; each row by a fit of the "
        "others "
        "(loo); or those that a bootstrap resample leaves out.",
    )
    test_fraction: float = Field(
        0.2, ge=0, lt=1, description="Rows held out and looked at once; 0: none, and nothing is promised of new rows."
    )
    folds: int = Field(5, ge=2, le=100, description="K of kfold.")
    resamples: int = Field(50, ge=10, le=1000, description="Number of resamples of the bootstrap.")
    group: str | None = Field(
        None,
        description="A column that names rows which belong together, such as a patient: all rows with one value of it "
        "are on the same side of every split into training and test rows, folds and resamples, so that the metrics are "
        "those of new groups. A row without a value is a group of its own. The column is not a feature unless "
        "`features` names it. Rows that an algorithm sets aside within a fit, as for early stopping, are drawn row by "
        "row. Null: rows are split one by one.",
    )

    def fits(self, rows: int) -> int:
        """How many models are fitted on a table of so many rows, at most. rows: or groups, where these are split."""
        trained = round(rows * (1 - self.test_fraction))
        return 1 + {"holdout": 0, "kfold": self.folds, "loo": trained, "bootstrap": self.resamples}[self.method]


class Evaluation(NamedTuple):
    """What some rows say of a model. Without rows it says nothing."""

    figures: list[Figure]
    confusion_matrix: ConfusionMatrix | None = None
    curves: list[ReportCurve] = []
    residuals: Vector = np.zeros(0)
    """(n,) of a regression: √w·(y − prediction)."""
    rejection: RejectionCurve | None = None
    cost: CostReport | None = None
    unanswered: int = 0
    """Rows to which the model says that it does not know; the figures take its most probable class."""

    def doubts(self, rows: str) -> list[str]:
        """What is to be said of them. rows: what they are called."""
        said = "the model says that it does not know; its most probable class was taken."
        return [f"To {self.unanswered} {rows} {said}"] if self.unanswered else []

    def judgement(self, rows: Labels) -> dict[str, Any]:
        """What of it is in a `Judgement`. rows: (n,) what the rows are called."""
        return {
            "metrics": self.figures,
            "confusion_matrix": self.confusion_matrix,
            "curves": self.curves,
            "rejection": self.rejection,
            "costs": self.cost,
            "residuals": residuals("judged", rows, self.residuals),
        }


class Judgement(Wire):
    """What rows say of predictions."""

    task: str = Field(description="Task: regression, classification, clustering or projection.")
    rows: int = Field(description="Number of evaluated rows.")
    metrics: list[Figure] = Field(description="Metrics, each with its confidence interval.")
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


class Asked(NamedTuple):
    """What else shall be told of a classification."""

    examples: int = 0
    """Rows named in every cell of the confusion matrix."""
    numbers: Labels | None = None
    """(n,) what the rows are called; absent: 0 … n-1."""
    costs: Costs | None = None
    threshold: float | None = None
    """Of two classes: the second is assigned above this probability of it."""


NOTHING_ELSE = Asked()


def evaluate(
    learned: Learned, data: Data, train: Data, classes: Sequence[Class], rng: np.random.Generator | None
) -> Evaluation:
    """Predict the rows of `data` (prepared as for the fit) and measure; without error bars if there is no `rng`.

    train: the rows the fit has seen (`data` itself for training figures), for centres and means.
    classes: the label of each class code, in order; empty for other tasks.
    """
    if not len(data.x):
        return Evaluation([])
    predicted = learned.algorithm.predict(learned.params, learned.state, data.x)
    if data.task.supervised:
        known = learned.algorithm.known if data.task.of_classes else None
        answered = None if known is None else known(learned.params, predicted)
        means = meaning(learned.algorithm, learned.params, data.task)
        return compare(data, predicted, classes, rng, answered, means=means)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is told as undefined
        return Evaluation(_figures(learned, data, train, predicted, _draws(data, rng)))


def compare(
    data: Data,
    predicted: NDArray[Any],
    classes: Sequence[Class],
    rng: np.random.Generator | None,
    answered: NDArray[np.bool_] | None = None,
    *,
    means: Meaning = PLAIN,
) -> Evaluation:
    """Answers for rows with a target, whoever gave them, beside what they should be.

    answered: as in `of_classes`.
    """
    rows = Rows(_draws(data, rng))
    if data.task.of_classes:
        result = predicted.argmax(axis=1)
        return of_classes(data.codes, result, predicted, rows, classes=classes, answered=answered, means=means)
    return of_numbers(data.y, predicted, rows, means)._replace(residuals=np.sqrt(data.weights) * (data.y - predicted))


def _draws(data: Data, rng: np.random.Generator | None) -> Resamples:
    return Resamples.none(len(data.x)) if rng is None else Resamples.of(len(data.x), rng)


def of_numbers(truth: Vector, predicted: Vector, rows: Rows, means: Meaning = PLAIN) -> Evaluation:
    """Of predictions (n,) of a regression."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is told as undefined
        figures = measures.regression(truth, predicted, rows.draws, rows.weights)
        if means.through_origin:
            figures.append(measures.uncentred_r2(truth, predicted, rows))
        left = (truth - predicted) * (1.0 if rows.weights is None else np.sqrt(rows.weights))
        return Evaluation(figures, curves=over_predictions(truth, predicted), residuals=left)


def of_classes(
    truth: Labels,
    assigned: Labels,
    probabilities: Matrix | None,
    rows: Rows,
    *,
    classes: Sequence[Class],
    asked: Asked = NOTHING_ELSE,
    answered: NDArray[np.bool_] | None = None,
    means: Meaning = PLAIN,
) -> Evaluation:
    """Of assigned class codes (n,), and of the probabilities (n, k) where there are any.

    answered: (n,) false where the model says that it does not know; the figures take its most probable class, and two
    more tell of the others.
    """
    draws, weights, costs = rows.draws, rows.weights, asked.costs
    seen = measures.confusion(truth, assigned, classes, numbers=asked.numbers, examples=asked.examples)
    cost = None if costs is None else cost_report(truth, assigned, probabilities, rows, classes=classes, costs=costs)
    if means.degrees and cost is not None:
        cost = cost.model_copy(update={"cost": cost.cost.model_copy(update={"note": measures.NO_PROBABILITIES})})
    if probabilities is None:
        return Evaluation(measures.decisions(truth, assigned, classes, draws, weights), seen, cost=cost)
    top = probabilities[np.arange(truth.size), assigned]
    chosen = [] if answered is None or answered.all() else measures.selective(assigned == truth, answered, rows)
    figures = measures.classification(
        truth, probabilities, classes, draws, weights, assigned=assigned, degrees=means.degrees
    )
    return Evaluation(
        figures=[*figures, *chosen],
        confusion_matrix=seen,
        curves=ranking.curves(truth, probabilities, classes, weights),
        rejection=measures.rejection(top, assigned == truth, len(classes), rows) if len(classes) > 1 else None,
        unanswered=0 if answered is None else int((~answered).sum()),
        cost=cost,
    )


def _figures(learned: Learned, data: Data, train: Data, predicted: NDArray[Any], draws: Resamples) -> list[Figure]:
    """Of tasks without a target."""
    match data.task.record.prediction:
        case PredictionKind.LABEL:
            centres = _centroids(learned, train, int(predicted.max()))
            return measures.clustering(data.x, predicted, centres, draws)
        case PredictionKind.COORDINATES:
            inverse = learned.algorithm.inverse
            restored = inverse(learned.params, learned.state, predicted) if inverse else None
            return [] if restored is None else measures.projection(data.x, restored, train.x.mean(axis=0), draws)
    return [measures.mean("log_density", predicted, draws)]


def gaps(train: Sequence[Figure], test: Sequence[Figure]) -> list[Gap]:
    """Training beside test (LION 3.2), for every figure of the whole that means the same on both."""
    seen = {figure.name: figure.value for figure in train if figure.label is None}
    return [
        Gap(
            name=figure.name,
            average=figure.average,
            train=before,
            test=figure.value,
            gap=_worse(figure.name, before, figure.value),
        )
        for figure in test
        if figure.label is None and figure.name in MEASURES
        for before in (seen.get(figure.name),)
    ]


def across_folds(folds: Sequence[Sequence[Figure]]) -> list[Figure]:
    """Mean of every figure over the folds where it is defined, with a Student-t interval (LION 5.2.3)."""
    return [like(fold_mean(one.name, values, one.label), one) for one, values in _gathered(folds)]


def across_resamples(resamples: Sequence[Sequence[Figure]]) -> list[Figure]:
    """As `across_folds`, with the middle of the resamples as the interval."""
    return [like(resample_mean(one.name, values, one.label), one) for one, values in _gathered(resamples)]


def corrected(seen: Sequence[Figure], unseen: Sequence[Figure]) -> list[Figure]:
    """The .632 rule: rows left out of a resample judge a fit of few different rows, so they are a little too strict.

    seen: figures of the training rows, never a promise. unseen: figures of the rows left out.
    Source: Efron (1983), J. Am. Stat. Assoc. 78:316.
    """
    before = {(figure.name, figure.label): figure.value for figure in seen}
    return [
        shifted(figure, 0.368 * (value - figure.value))
        for figure in unseen
        if figure.value is not None and (value := before.get((figure.name, figure.label))) is not None
    ]


def _gathered(folds: Sequence[Sequence[Figure]]) -> list[tuple[Figure, Vector]]:
    """Each figure, as one of the folds has it, with its values in those where it is defined."""
    found: dict[tuple[str, str | None], list[Figure]] = defaultdict(list)
    for figure in (figure for figures in folds for figure in figures):
        if figure.name in MEASURES and figure.value is not None:
            found[figure.name, figure.label].append(figure)
    return [(alike[0], np.array([one.value for one in alike])) for alike in found.values()]


def _worse(name: str, train: float | None, test: float | None) -> float | None:
    return None if train is None or test is None else MEASURES[name].better * (train - test)


def _centroids(learned: Learned, train: Data, last: int) -> Matrix:
    """Mean of the training rows of each cluster; a cluster without any is at the mean of all."""
    labels = learned.algorithm.predict(learned.params, learned.state, train.x)
    k = max(int(labels.max()), last) + 1
    sizes = np.bincount(labels, train.weights, k)
    sums = np.stack([np.bincount(labels, train.weights * column, k) for column in train.x.T], axis=1)
    return np.where(sizes[:, None] > 0, ratio(sums, sizes[:, None]), train.x.mean(axis=0))

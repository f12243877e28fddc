"""Metrics of predictions that you have, each with its confidence interval and rounded to it.

Classes may come with labels, with probabilities or with both. At most 100,000 pairs; for more, a job evaluates
a model on a dataset.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import Field, RootModel

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.validated_copy import ValidatedCopy
from app.base.wire import Body
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import NO_LABEL, UNKNOWN, Class, Label, Unchecked, codes_of, different, unknown_labels
from app.ml.evaluation.costs import Costs, cost_faults
from app.ml.evaluation.evaluation import ClassOptions, Evaluation, EvaluationReport, of_classes, of_numbers
from app.ml.evaluation.rejection import decided_by
from app.ml.kinds.query import Query
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.resampling import Rows

MAX_PAIRS = 100_000
"""Pairs in one request; a job evaluates more."""
MAX_NAMED_FAULTS = 10
"""Faults reported of one list."""
TOLERANCE = 1e-4
"""Tolerance of the sum of a row's probabilities: that of single precision and six digits."""


Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Weight: TypeAlias = Annotated[float, Field(ge=0, le=1e12)]
Number: TypeAlias = Annotated[float, Field(ge=-1e150, le=1e150)]


class Pairs(Body):
    """Fields of all kinds of pairs."""

    weights: list[Weight] | None = Field(None, max_length=MAX_PAIRS, description="Weight of each pair.")
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the bootstrap intervals.")


class NumberPairs(Pairs):
    """Numbers beside numbers: RMSE, MAE, R2, and what the residuals look like."""

    task: Literal["regression"] = Field(description="Task of the pairs.")
    truth: list[Number] = Field(min_length=1, max_length=MAX_PAIRS, description="True number of each row.")
    predicted: list[Number] = Field(max_length=MAX_PAIRS, description="Predicted number of each row.")


class ClassPairs(Pairs):
    """Classes beside classes, beside probabilities, or beside both."""

    task: Literal["classification"] = Field(description="Task of the pairs.")
    truth: list[Unchecked] = Field(min_length=1, max_length=MAX_PAIRS, description="True class of each row.")
    predicted: list[Unchecked] | None = Field(
        None, max_length=MAX_PAIRS, description="Predicted class of each row; null: the most probable class."
    )
    probabilities: list[list[float]] | None = Field(
        None, max_length=MAX_PAIRS, description="One for each class, in the order of `classes`."
    )
    scores: list[Share] | None = Field(
        None,
        max_length=MAX_PAIRS,
        description="Probability of the second of two classes for each row, in place of `probabilities`; "
        "null: not given.",
    )
    classes: list[Label] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Classes in the order of the probabilities; null: those that occur, in ascending order.",
    )
    costs: Costs | None = Field(
        None, description="Cost matrix; adds the costs of the cheapest classes. Null: no costs."
    )
    threshold: Share | None = Field(
        None,
        description="Smallest probability of the second of two classes with which it is predicted; null: the most "
        "probable class is predicted.",
    )
    examples: int = Field(20, ge=0, le=1000, description="Pairs named in every cell of the confusion matrix.")


class MetricsRequest(ValidatedCopy, RootModel[Annotated[NumberPairs | ClassPairs, Field(discriminator="task")]]):
    """Pairs of truth and prediction."""


class Metrics(EvaluationReport):
    """Metrics of pairs of truth and prediction. A metric that is undefined (0/0) is null."""


def measure(request: MetricsRequest) -> Metrics:
    """Raises InvalidRequest with every fault. Metrics after LION 3.2 and 3.3."""
    pairs = request.root
    faults = list(_length_faults(pairs))
    if isinstance(pairs, ClassPairs):
        unreadable = list(_label_faults(pairs))
        classes = [] if unreadable else _classes(pairs)
        faults += unreadable or _class_faults(pairs, classes)
    if faults:
        raise InvalidRequest(faults=faults)
    weights = None if pairs.weights is None else np.array(pairs.weights)
    rng = np.random.Generator(np.random.PCG64(pairs.seed))
    rows = Rows(Resamples.of(len(pairs.truth), rng), weights)
    result = _classified(pairs, classes, rows) if isinstance(pairs, ClassPairs) else _regressed(pairs, rows)
    n = len(pairs.truth)
    return Metrics(task=pairs.task, rows=n, **result.as_fields(np.arange(n)))


def _regressed(pairs: NumberPairs, rows: Rows) -> Evaluation:
    return of_numbers(np.array(pairs.truth), np.array(pairs.predicted), rows)


def _classified(pairs: ClassPairs, classes: Sequence[Class], rows: Rows) -> Evaluation:
    probabilities, truth = _probabilities(pairs), codes_of(pairs.truth, classes)
    if pairs.predicted is not None:
        assigned = codes_of(pairs.predicted, classes)
    else:
        assigned = np.zeros(0, np.intp) if probabilities is None else decided_by(probabilities, pairs.threshold)
    requested = ClassOptions(pairs.examples, None, pairs.costs, pairs.threshold)
    return of_classes(truth, assigned, probabilities, rows, classes=classes, options=requested)


def _probabilities(pairs: ClassPairs) -> Matrix | None:
    if pairs.scores is not None:
        second = np.array(pairs.scores)
        return np.stack([1 - second, second], axis=1)
    return None if pairs.probabilities is None else np.array(pairs.probabilities)


def _classes(pairs: ClassPairs) -> Sequence[Class]:
    return different([*pairs.truth, *(pairs.predicted or ())]) if pairs.classes is None else pairs.classes


def _length_faults(pairs: NumberPairs | ClassPairs) -> Iterator[Fault]:
    n = len(pairs.truth)
    for name in ("predicted", "probabilities", "scores", "weights"):
        values = getattr(pairs, name, None)
        if values is not None and len(values) != n:
            yield Fault(f"/{name}", f"There are {len(values)} for {n} truths.", "wrong_length")
    if pairs.weights is not None and not any(pairs.weights):
        yield Fault("/weights", "One of them has to be above zero.")


def _label_faults(pairs: ClassPairs) -> Iterator[Fault]:
    for name in ("truth", "predicted"):
        yield from _listed(name, unknown_labels(getattr(pairs, name) or ()), NO_LABEL, "class_label")


def _class_faults(pairs: ClassPairs, classes: Sequence[Class]) -> Iterator[Fault]:
    k = len(classes)
    if pairs.predicted is None and pairs.probabilities is None and pairs.scores is None:
        yield Fault("/predicted", "Predicted classes, probabilities or scores are needed.", "missing")
    if pairs.probabilities is not None and pairs.scores is not None:
        yield Fault("/scores", "Send probabilities or scores, not both.")
    if pairs.threshold is not None and (k != 2 or pairs.predicted is not None):
        yield Fault("/threshold", "It decides between two classes where none is predicted.")
    if pairs.scores is not None and k != 2:
        yield Fault("/scores", f"Scores are for two classes; there are {k}.")
    if k > len(different(classes)):
        yield Fault("/classes", "A class is named twice.", "duplicate")
    for name, labels in (("truth", pairs.truth), ("predicted", pairs.predicted or ())):
        unknown = np.flatnonzero(codes_of(labels, classes) == UNKNOWN)
        yield from _listed(name, unknown, "This is none of the classes.", "unknown_class")
    yield from _probability_faults(pairs.probabilities or [], k)
    if pairs.costs is not None:
        yield from cost_faults(pairs.costs, classes, "/costs")


def _probability_faults(probabilities: Sequence[Sequence[float]], k: int) -> Iterator[Fault]:
    widths = np.array([len(row) for row in probabilities], np.intp)
    yield from _listed("probabilities", np.flatnonzero(widths != k), f"There are {k} classes.", "wrong_length")
    sums: Vector = np.array([sum(row) for row in probabilities])
    lowest: Vector = np.array([min(row, default=0.0) for row in probabilities])
    wrong = np.flatnonzero((widths == k) & ((np.abs(sums - 1) > TOLERANCE) | (lowest < 0)))
    yield from _listed("probabilities", wrong, "Probabilities are not below 0, and add up to 1.", "wrong_sum")


def _listed(name: str, places: Labels, detail: str, code: str) -> Iterator[Fault]:
    for place in places[:MAX_NAMED_FAULTS].tolist():
        yield Fault(f"/{name}/{place}", detail, code)
    if places.size > MAX_NAMED_FAULTS:
        yield Fault(f"/{name}", f"And {places.size - MAX_NAMED_FAULTS} more like these.", code)


QUERY = Query(
    operation="measure_predictions",
    request=MetricsRequest,
    response=Metrics,
    run=measure,
    path="/v1/metrics",
    tag="evaluation",
)

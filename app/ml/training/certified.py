"""Guarantees of a trained classifier: its evidence, and the premises of bounds that its training does not meet."""

from app.ml.contract.capacity import Capacity
from app.ml.evaluation import duplicates
from app.ml.evaluation.evaluation import Evaluation
from app.ml.evaluation.guarantees import Errors, Evidence, Guarantees, guarantees
from app.ml.training.drawn_rows import DrawnRows
from app.ml.training.fitting.fit import Fitted
from app.ml.training.planning.plan import Plan
from app.ml.training.reporting.reporting import EvaluatedFit


def certified(drawn: DrawnRows, fitted: Fitted, evaluated: EvaluatedFit, planned: Plan) -> Guarantees | None:
    """Bounds of the error rate; None for other tasks than classification."""
    training_set, complete = drawn.training_set, drawn.stream is None
    if not training_set.task.of_classes:
        return None
    evidence = Evidence(
        test=_errors(evaluated.test),
        train=_errors(evaluated.train) if complete else None,
        classes=len(training_set.classes),
        capacity=_capacity(fitted) if complete else None,
        gibbs=fitted.fit.gibbs if complete else None,
        dependent=_dependent(drawn, evaluated, planned),
        prepared=_prepared(planned),
        undetermined=_undetermined(fitted, planned),
    )
    return guarantees(evidence)


def _errors(evaluation: Evaluation) -> Errors | None:
    """Wrong predictions; None without rows."""
    matrix = evaluation.confusion_matrix
    if matrix is None:
        return None
    rows = sum(map(sum, matrix.counts))
    return Errors(rows - sum(row[place] for place, row in enumerate(matrix.counts)), rows)


def _capacity(fitted: Fitted) -> Capacity | None:
    algorithm, params, state = fitted.learned.algorithm, fitted.learned.params, fitted.fit.state
    return None if algorithm.capacity is None else algorithm.capacity(params, state, fitted.data)


def _dependent(drawn: DrawnRows, evaluated: EvaluatedFit, planned: Plan) -> str | None:
    spec, validation = planned.spec, planned.spec.validation
    if validation.group is not None:
        return f"Rows of one {validation.group!r} may depend on each other: rows are not independent."
    if validation.time is not None:
        return f"Rows are ordered by {validation.time!r}: those that come later may have another distribution."
    if spec.weights is not None:
        return f"Rows have weights, by column {spec.weights!r}: the bounds are of rows that count alike."
    if spec.relations is not None:
        return "Rows are related to each other: they are not independent."
    if any(duplicates.warnings(evaluated.equal, None, drawn.split.train.size, grouped=False)):
        return "More test rows equal a training row than chance explains: rows are not independent."
    return None


def _prepared(planned: Plan) -> str | None:
    if planned.selected is not None:
        return planned.selected
    if planned.projection is not None:
        return "The inputs are coordinates of another model, which may have been fitted on these rows."
    if planned.start is not None:
        return "The fit starts from another model, which may have been fitted on these rows."
    if planned.spec.preprocessing.categories == "target":
        return "Categories may be replaced by means of the target, which the training rows have set."
    return None


def _undetermined(fitted: Fitted, planned: Plan) -> str | None:
    if not fitted.fit.converged:
        return "The fit has not converged: one of the support vectors alone may give another model."
    if planned.spec.class_weight == "balanced":
        return "The weights of classes follow from all rows: a fit of the support vectors alone has others."
    return None

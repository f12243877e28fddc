"""Choosing among candidates: all on the same folds, compared pair by pair (LION 3.1, 3.2, 5.2.1, 5.2.3, 8.3).

The folds divide the training rows; the test rows see the chosen one only. Preparation is learned anew in every fold.
The metrics of many candidates on the same folds flatter the best of them: its test metrics show what to expect.

The interval of a difference is Student's t of the differences fold by fold, which share their rows: approximate, but
free of what makes a fold easy or hard for everyone.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidData, ValiantError
from app.base.wire import Wire
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Each, Labels, Vector, in_turn
from app.ml.contract.progress import Stages
from app.ml.evaluation.duplicates import Copies, warnings
from app.ml.statistics.metric_value import Metric, fold_mean
from app.ml.training.fitting.fit import evaluate_rows, evaluate_training_rows, fit_rows, predict_training_rows
from app.ml.training.fitting.structural_risk import STRUCTURAL_RISK, CandidateCapacity, Risk, vacuous
from app.ml.training.planning.plan import Plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.search.candidates import Candidate
from app.ml.training.search.ensemble_selection import Comparison, Contender, Ensemble, ensemble, value, with_one_more
from app.ml.training.search.ranking_criteria import CRITERIA, Q, higher_is_better, of_all_rows

SEPARATION = "separation"
TIE = 1e-9
"""Relative difference of two means below which neither is better."""
N = TypeVar("N", float, Vector)


class Setting(Wire):
    """Setting of a candidate."""

    pointer: str = Field(description="JSON pointer to the setting within the request.")
    value: Any = Field(description="Value of the setting.")


class CandidateResult(Wire):
    """One candidate and how it did."""

    algorithm: str = Field(description="Name of the algorithm.")
    settings: list[Setting] = Field(description="Settings in which the candidate differs from the request.")
    rank: int | None = Field(None, description="Rank from 1; null where the candidate could not be evaluated.")
    validation: Metric | None = Field(None, description="Mean over the folds.")
    train: Metric | None = Field(None, description="The same on the rows that were learned from: never a promise.")
    folds: list[float | None] = Field([], description="Value of the metric, fold by fold.")
    behind: Metric | None = Field(
        None, description="Difference from the first in rank, fold by fold, with the interval of the difference."
    )
    capacity: CandidateCapacity | None = Field(
        None, description="CandidateCapacity of the candidate, where structural_risk ranks; null: it does not."
    )
    error: str | None = Field(
        None, description="Reason why the candidate could not be evaluated; null: it was evaluated."
    )


class Ranking(NamedTuple):
    metric: str
    tried: list[CandidateResult]
    best: int
    """Place of the chosen one."""
    evidence: str
    ensemble: Ensemble | None = None
    warnings: tuple[str, ...] = ()


class _Scores(NamedTuple):
    validation: Vector
    """(folds,) NaN where undefined."""
    train: Vector
    error: str | None = None
    predictions: NDArray[np.float64] = np.zeros(0)
    """(n,) or (n, k) to rows that the fit had not seen, where they can be kept."""
    risk: Vector = np.zeros(0)
    """The three parts of `Risk`, if structural risk ranks."""

    @property
    def mean(self) -> float:
        return float(self.validation.mean()) if self.validation.size else np.nan


def rank(
    candidates: Sequence[Candidate],
    planned: Plan,
    table: pa.Table,
    *,
    folds: int,
    metric: str | None,
    rule: Literal["best", "one_standard_error"],
    stages: Stages,
    share: float,
    fold_models: bool = False,
    each: Each = in_turn,
) -> Ranking:
    """Validate every candidate and choose one.

    planned: for the first of them. folds: K.
    metric: a name of `MEASURES` or `CRITERIA`, or Q. share: of the progress that is ours. fold_models: see `ensemble`.
    rule: the best, ties going to the first; or the first whose mean is within the best one's standard error.
    Raises InvalidData if none can be evaluated.
    """
    first, training_set = planned.spec, TrainingSet.read(planned, table, each)
    rng = np.random.Generator(np.random.PCG64(first.seed))
    rows = training_set.holdout(first.validation.held_out, rng).train
    splits = training_set.folds(rows, folds, rng)
    if not splits:
        raise InvalidData("There are too few training rows for folds.")
    copies = Copies.look(table, training_set.target.rows, planned.features, planned.target, train=rows).among(rows)
    name = metric or usual_metric(training_set, [candidate.spec for candidate in candidates])
    comparison, contenders = Comparison(training_set, rows, splits, name), list[Contender]()
    scores: list[_Scores] = []
    stages(0.0, f"candidate 1 of {len(candidates)}")
    tasks = [partial(_scores, comparison, candidate.spec) for candidate in candidates]
    for place, score in enumerate(training_set.each(_Scores, tasks)):
        contender = Contender(place, candidates[place].spec, cost_of(name, score.validation), score.predictions)
        contenders = with_one_more(contenders, contender, comparison.room)
        scores.append(score._replace(predictions=np.zeros(0)))
        stages(
            share * len(scores) / len(candidates), f"candidate {len(scores)} of {len(candidates)}", {name: score.mean}
        )
    options = "all" if of_all_rows(name) else f"the same {len(splits)} folds of"
    result = f"{len(candidates)} candidates on {options} {rows.size} training rows."
    ranking = _ranked(candidates, scores, name, rule, result)
    warned = [*warnings(None, copies.across(splits), rows.size, grouped=training_set.groups is not None)]
    warned += [*vacuous(float(score.validation[0]) for score in scores if score.risk.size)]
    return ranking._replace(ensemble=ensemble(contenders, comparison, fold_models=fold_models), warnings=tuple(warned))


def _scores(comparison: Comparison, spec: TrainSpec) -> _Scores:
    validation, train, predictions = [], [], []
    metric, rows, seed = comparison.metric, comparison.rows, spec.seed
    try:
        training_set = comparison.training_set.of(spec)
        if metric == Q:
            return _Scores(np.array([_q(training_set, rows, seed)]), np.zeros(0))
        if metric in CRITERIA:
            values = CRITERIA[metric].values(training_set, rows, comparison.splits, seed)
            of_risk = 1 if metric == STRUCTURAL_RISK else values.size
            return _Scores(values[:of_risk], np.zeros(0), risk=values[of_risk:])
        for split in comparison.splits:
            fitted = fit_rows(training_set, rows[split.train], seed)
            if training_set.task.supervised:
                data = training_set.data(fitted.preparation, rows[split.test])
                predictions.append(training_set.algorithm.predict(training_set.params, fitted.fit.state, data.x))
                validation.append(comparison.value(spec, predictions[-1], split.test))
            else:
                validation.append(value(evaluate_rows(training_set, fitted, rows[split.test], None), metric))
            train.append(value(evaluate_training_rows(fitted, predict_training_rows(fitted), None), metric))
    except ValiantError as error:
        return _Scores(np.zeros(0), np.zeros(0), error.detail)
    return _Scores(np.array(validation), np.array(train), predictions=_in_order(predictions, comparison))


def _in_order(predictions: Sequence[NDArray[np.float64]], comparison: Comparison) -> NDArray[np.float64]:
    """Predictions of all rows in their order, where there is room."""
    if comparison.room < 2 or not predictions:
        return np.zeros(0)
    back = np.argsort(np.concatenate([split.test for split in comparison.splits]))
    return np.asarray(np.concatenate(predictions)[back])


def _q(training_set: TrainingSet, rows: Labels, seed: int) -> float:
    fitted, summary = fit_rows(training_set, rows, seed), training_set.algorithm.summary
    result = summary(training_set.params, fitted.fit.state) if summary else None
    value = result.get(Q) if isinstance(result, dict) else None
    if value is None:
        raise InvalidData("It has no goodness of fit Q: that takes a fit of known error, such as linear with sigma.")
    return float(value)


def _ranked(candidates: Sequence[Candidate], scores: Sequence[_Scores], metric: str, rule: str, result: str) -> Ranking:
    cost = np.array([cost_of(metric, score.mean) for score in scores])
    if not np.isfinite(cost).any():
        errors = [score.error for score in scores if score.error]
        raise InvalidData(errors[0] if errors else f"No candidate has a defined {metric} here.")
    order = order_of(cost)
    if rule == "one_standard_error":
        limit = cost[order[0]] + standard_error(scores[order[0]].validation)
        chosen = int(np.flatnonzero(cost <= limit)[0])
        order = np.array([chosen, *(place for place in order if place != chosen)])
    best = int(order[0])
    ranks = {int(place): i + 1 for i, place in enumerate(order) if np.isfinite(cost[place])}
    tried = [
        CandidateResult(
            algorithm=candidate.spec.algorithm.name,
            settings=[Setting(pointer=pointer, value=value) for pointer, value in candidate.settings.items()],
            rank=ranks.get(place),
            validation=_mean(metric, score.validation),
            train=_mean(metric, score.train),
            folds=[None if np.isnan(value) else value for value in score.validation.tolist()],
            behind=None if place == best else _behind(metric, scores[best], score),
            capacity=CandidateCapacity.of(Risk(*score.risk.tolist())) if score.risk.size else None,
            error=score.error or (None if np.isfinite(score.mean) else f"Its {metric} is undefined."),
        )
        for place, (candidate, score) in enumerate(zip(candidates, scores, strict=True))
    ]
    return Ranking(metric, tried, best, result)


def usual_metric(training_set: TrainingSet, specs: Sequence[TrainSpec]) -> str:
    """That of the task; accuracy where the shares of classes of a candidate are no probabilities, and separation where
    a projection learns from classes.
    """
    task = training_set.task
    if not task.supervised and training_set.target.codes is not None:
        return SEPARATION
    of_degrees = (nested.degrees(find(spec.algorithm.name).algorithm, spec.algorithm) for spec in specs)
    return "accuracy" if task.of_classes and any(of_degrees) else task.record.measure


def cost_of(metric: str, value: N) -> N:
    """The lower the better."""
    return -value if higher_is_better(metric) else value


def _behind(metric: str, best: _Scores, other: _Scores) -> Metric | None:
    if other.validation.shape != best.validation.shape:
        return None
    return _mean(f"{metric}_difference", cost_of(metric, other.validation - best.validation))


def order_of(cost: Vector) -> Labels:
    """Ascending; of costs that are equal but for rounding the first comes first, what is not a number last."""
    sorted_, order = np.sort(cost), np.argsort(cost, kind="stable")
    steps = np.diff(sorted_) > TIE * np.abs(sorted_[1:])
    group = np.concatenate(([0], np.cumsum(steps | np.isnan(sorted_[1:]))))
    return order[np.lexsort((order, group))]


def standard_error(values: Vector) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def _mean(metric: str, values: Vector) -> Metric | None:
    return fold_mean(metric, values) if values.size and np.isfinite(values).all() else None

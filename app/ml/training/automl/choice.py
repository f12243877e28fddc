"""The choice among candidates with all folds: the best, the smallest of those that may be as good, or an ensemble."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.wire import Wire
from app.ml.evaluation.row_losses import metric_of, worse_by
from app.ml.preparation.target_transform import carried, in_units
from app.ml.statistics.metric_value import Metric, fold_mean
from app.ml.training.automl.ensemble_weights import GAIN_CONFIDENCE, MAX_POOL, Pool
from app.ml.training.automl.honest_estimate import bias_corrected
from app.ml.training.automl.leaderboard import Comparison, LeaderboardRow, pareto_front
from app.ml.training.automl.portfolio import Setting
from app.ml.training.automl.proposals import Offer
from app.ml.training.automl.search_run import SearchRun
from app.ml.training.search.ensemble_selection import is_refused
from app.ml.training.search.search import standard_error

MIN_FOLDS = 3
"""Folds from which on an ensemble can be compared with its best member."""
MAX_HONEST_CANDIDATES = 50


class EnsembleWeight(Wire):
    """Member of the ensemble of a search for the best model."""

    candidate: int = Field(description="Id of the candidate.")
    weight: int = Field(description="Number of times that it was chosen.")


class WeightedEnsemble(Wire):
    """Ensemble that a search for the best model has tried."""

    members: list[EnsembleWeight] = Field(description="Members, most weight first.")
    gain: float = Field(
        description="Mean over the folds by which it is better than the best candidate, where other folds chose both."
    )
    gain_lower: float = Field(description="One-sided 90 % lower bound of the gain.")
    chosen: bool = Field(description="True if it is served: the bound is above 0, and there was time to train it.")


class Proposal(NamedTuple):
    """An ensemble, and the candidate that trains it."""

    ensemble: WeightedEnsemble
    offer: Offer | None
    """None: it is not surely better than its best member."""


def comparison(run: SearchRun, candidates: Sequence[int]) -> Comparison:
    return Comparison.of(run.metric, [run.order.losses(candidate) for candidate in candidates])


def leaderboard(run: SearchRun) -> list[LeaderboardRow]:
    """Every candidate, in the order of admission."""
    ranked = run.eligible
    differences = dict(zip(ranked, comparison(run, ranked).differences, strict=True)) if ranked else {}
    places = {candidate: place for place, candidate in enumerate(ranked, 1)}
    rows = []
    for number, offer in enumerate(run.offers):
        losses, trials = run.order.losses(number), run.trials_of(number)
        behind, same = differences.get(number, (None, None))
        rows.append(
            LeaderboardRow(
                id=number,
                algorithm=offer.family,
                parameters=offer.parameters,
                state=run.order.states[number],
                reason=run.order.reasons[number],
                rank=places.get(number),
                validation=_validation(run.metric, losses),
                behind=behind,
                same_as_best=same,
                microseconds_a_row=float(np.median([trial.microseconds_a_row for trial in trials])) if trials else None,
                size_bytes=round(float(np.mean([trial.state_bytes for trial in trials]))) if trials else None,
                seconds=round(run.seconds.get(number, 0.0), 3),
            )
        )
    return rows


def _validation(metric: str, losses: Sequence[np.ndarray]) -> Metric | None:
    return fold_mean(metric, np.array([metric_of(metric, fold_losses) for fold_losses in losses])) if losses else None


def chosen_candidate(
    run: SearchRun, rows: Sequence[LeaderboardRow], choose: Literal["simplest", "metric"]
) -> int | None:
    """The candidate that is served; None: none has all folds."""
    ranked = sorted((row for row in rows if row.rank is not None), key=lambda row: row.rank or 0)
    if not ranked:
        return None
    if choose == "metric":
        return ranked[0].id
    compared = comparison(run, [row.id for row in ranked])
    reach = standard_error(compared.values[0])
    near = [
        row
        for place, row in enumerate(ranked)
        if row.same_as_best and worse_by(run.metric, compared.values[place], compared.values[0]).mean() <= reach
    ]
    return min(near, key=lambda row: (row.size_bytes or 0, row.rank or 0)).id


def pareto(run: SearchRun, rows: Sequence[LeaderboardRow]) -> list[int]:
    """Candidates that no other beats in loss, time and size at once, the best first."""
    ranked = sorted((row for row in rows if row.rank is not None), key=lambda row: row.rank or 0)
    if not ranked:
        return []
    losses = [float(np.concatenate(run.order.losses(row.id)).mean()) for row in ranked]
    micros = [float(f"{row.microseconds_a_row or 0.0:.2g}") for row in ranked]
    costs = np.array([losses, micros, [row.size_bytes or 0 for row in ranked]]).T
    return [ranked[place].id for place in pareto_front(costs)]


def proposed_ensemble(run: SearchRun, max_members: int, seed: int) -> Proposal | None:
    """The ensemble of the best candidates that see the columns alike; None: there are too few, or it is one of them."""
    eligible, folds = run.eligible, range(len(run.folds.splits))
    if max_members < 2 or len(folds) < MIN_FOLDS or not eligible:
        return None
    training_set = run.folds.training_set
    seen = training_set.of(run.offers[eligible[0]].spec).left_alone
    alike = [
        candidate
        for candidate in eligible
        if training_set.of(run.offers[candidate].spec).left_alone == seen
        and not is_refused(run.offers[candidate].spec, training_set)
    ][:MAX_POOL]
    if len(alike) < 2:
        return None
    how = training_set.preprocessing.target
    averaged: list[list[Any]] = [[carried(how, fold) for fold in run.predictions(candidate)] for candidate in alike]
    pool = Pool(run.metric, averaged, [run.folds.truth(fold) for fold in folds], partial(in_units, how))
    counts = pool.weights(folds, max_members, seed)
    members = [place for place in np.argsort(-counts, kind="stable").tolist() if counts[place]]
    if len(members) < 2:
        return None
    gains = pool.gain(max_members, seed)
    lower = comparison(run, alike[:1]).lower_gain(gains, GAIN_CONFIDENCE)
    weights = [EnsembleWeight(candidate=alike[place], weight=int(counts[place])) for place in members]
    is_better = lower > 0
    ensemble = WeightedEnsemble(members=weights, gain=float(gains.mean()), gain_lower=lower, chosen=is_better)
    return Proposal(ensemble, _trained_as(run, weights) if is_better else None)


def _trained_as(run: SearchRun, weights: Sequence[EnsembleWeight]) -> Offer | None:
    """The committee as a candidate; None: it cannot be trained here."""
    specs = [run.offers[weight.candidate].spec.algorithm.model_dump(mode="json") for weight in weights]
    algorithm = {
        "name": "committee",
        "estimators": specs,
        "estimator_weights": [float(weight.weight) for weight in weights],
    }
    try:
        return run.table.offer(Setting(algorithm))
    except InvalidRequest:
        return None


def honest_metric(run: SearchRun, seed: int) -> Metric | None:
    """The metric of the chosen candidate without the luck of the choice; None: none has all folds."""
    eligible = run.eligible[:MAX_HONEST_CANDIDATES]
    if not eligible:
        return None
    losses = np.stack([np.concatenate(run.order.losses(candidate)) for candidate in eligible])
    return bias_corrected(run.metric, losses, seed)

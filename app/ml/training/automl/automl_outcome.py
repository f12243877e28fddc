"""The end of a search for the best model: the choice, the final fit within the time that is left, and the result."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from app.base.errors import BudgetTooSmall
from app.ml.contract.progress import Stages
from app.ml.evaluation.row_losses import metric_of, row_losses, worse_by
from app.ml.kinds.job import Outcome, Trained
from app.ml.statistics.metric_value import Metric
from app.ml.training.automl.automl_request import AutomlPlan, AutomlRequest
from app.ml.training.automl.automl_result import AutomlResult, EndedBy, LeftOut
from app.ml.training.automl.choice import (
    WeightedEnsemble,
    chosen_candidate,
    comparison,
    honest_metric,
    leaderboard,
    pareto,
    proposed_ensemble,
)
from app.ml.training.automl.leaderboard import LeaderboardRow
from app.ml.training.automl.portfolio import MAX_MEMBERS
from app.ml.training.automl.proposals import Offer
from app.ml.training.automl.search_run import SearchRun
from app.ml.training.automl.served_limits import broken_promise
from app.ml.training.search.ranking_criteria import higher_is_better

CHOSEN = 0.9
"""Progress of a search when it has chosen."""
MIN_FINAL_SECONDS = 1.0


class SearchEnd:
    """A search, and what becomes of it."""

    def __init__(self, request: AutomlRequest, planned: AutomlPlan, search: SearchRun, warnings: Sequence[str]) -> None:
        self._request, self._planned, self._search, self._warnings = request, planned, search, [*warnings]
        self._ensemble: WeightedEnsemble | None = None

    def outcome(self, stages: Stages) -> Outcome:
        """Search, choose, fit. Raises BudgetTooSmall where no candidate has all folds."""
        search, request = self._search, self._request
        ended_by = search.run()
        searched = search.budget.spent
        rows = leaderboard(search)
        chosen = chosen_candidate(search, rows, request.choose)
        if chosen is None and not search.limits_broken:
            raise self._nothing(rows)
        stages(CHOSEN, "fitting the chosen one on all training rows")
        trained: Trained | None = None
        served: int | None = chosen
        if chosen is None:
            self._warnings.append("No candidate keeps the limits: no version was made.")
        elif request.model is not None:
            trained, served = self._trained(chosen, rows)
        tested = None if trained is None else _metric_in(trained.report.test, search.metric)
        result = self._result(rows, served, tested, ended_by)
        seconds = {"search_seconds": searched, "final_seconds": search.budget.spent - searched}
        return Outcome(trained, result.model_copy(update={name: round(spent, 3) for name, spent in seconds.items()}))

    def _nothing(self, rows: Sequence[LeaderboardRow]) -> BudgetTooSmall:
        search, errors = self._search, [row.reason for row in rows if row.state == "failed" and row.reason]
        if errors and not any(row.state in {"skipped", "waiting"} for row in rows):
            return BudgetTooSmall(f"No candidate could be fitted. {errors[0]}")
        folds = len(search.folds.splits)
        if self._request.units is not None:
            return BudgetTooSmall(f"No candidate could be fitted in every fold: give it at least {folds} units.")
        needed = math.ceil(folds * search.budget.predict(search.offers[0].family, search.estimate(0)) + 1)
        return BudgetTooSmall(f"No candidate could be fitted in every fold: give it at least {needed} seconds.")

    # the final fit

    def _trained(self, chosen: int, rows: Sequence[LeaderboardRow]) -> tuple[Trained | None, int | None]:
        """The model, and the candidate that it is of; None of an ensemble, or without a model."""
        search = self._search
        if (trained := self._fitted_ensemble()) is not None:
            return trained, None
        ranked = [row.id for row in sorted(rows, key=lambda row: row.rank or math.inf) if row.rank is not None]
        for candidate in dict.fromkeys([chosen, *ranked]):
            trained = self._fitted(candidate)
            if trained is not None and (reason := self._broken(trained)) is None:
                if candidate != chosen:
                    self._warnings.append(f"Candidate {chosen} was chosen, and {candidate} is served instead.")
                return trained, candidate
            if trained is not None:
                self._warnings.append(f"Candidate {candidate} is not served: {reason}")
        checkpoint = search.checkpoint
        if checkpoint is not None and self._broken(checkpoint.fit.trained) is None:
            self._warnings.append("There was no time for a further final fit: the last checkpoint is served.")
            return checkpoint.fit.trained, checkpoint.candidate
        self._warnings.append("No version was made: no final fit ended in time, or kept the limits.")
        return None, None

    def _fitted(self, candidate: int) -> Trained | None:
        """The final fit of a candidate, which may be there already; None: it failed, or there is no time."""
        search, checkpoint = self._search, self._search.checkpoint
        if checkpoint is not None and checkpoint.candidate == candidate:
            return checkpoint.fit.trained
        needed = search.final_seconds(candidate)
        if needed > search.budget.left and (checkpoint is not None or search.budget.left < MIN_FINAL_SECONDS):
            return None
        fit = search.finish(search.offers[candidate])
        return None if fit is None else fit.trained

    def _fitted_ensemble(self) -> Trained | None:
        request, search = self._request, self._search
        proposal = proposed_ensemble(search, MAX_MEMBERS[request.preset], request.seed)
        if proposal is None:
            return None
        self._ensemble = proposal.ensemble.model_copy(update={"chosen": False})
        if proposal.offer is None:
            return None
        trained = None
        if self._ensemble_seconds(proposal.offer, proposal.ensemble) <= search.budget.left:
            fit = search.finish(proposal.offer)
            trained = None if fit is None else fit.trained
        if trained is None:
            self._warnings.append("There was no time to train the ensemble, which is surely better than one model.")
            return None
        if (reason := self._broken(trained)) is not None:
            self._warnings.append(f"The ensemble is not served: {reason}")
            return None
        self._ensemble = proposal.ensemble
        return trained

    def _ensemble_seconds(self, offer: Offer, ensemble: WeightedEnsemble) -> float:
        """Predicted seconds of its final fit: those of its members, and of an evaluation."""
        search = self._search
        members = sum(search.final_seconds(member.candidate) for member in ensemble.members)
        return max(members, search.final_seconds(ensemble.members[0].candidate)) if offer else members

    def _broken(self, trained: Trained) -> str | None:
        return broken_promise(trained, self._planned.size_bytes, self._request.limits.microseconds_a_row)

    # the result

    def _result(
        self, rows: Sequence[LeaderboardRow], served: int | None, tested: Metric | None, ended_by: EndedBy
    ) -> AutomlResult:
        search = self._search
        return AutomlResult(
            kind="automl",
            task=self._planned.task.value,
            metric=search.metric,
            better="higher" if higher_is_better(search.metric) else "lower",
            chosen=served,
            candidates=leaderboard(search),
            ensemble=self._ensemble,
            pareto=pareto(search, rows),
            evaluation=tested or honest_metric(search, self._request.seed),
            evidence=self._evidence(tested),
            left_out=[LeftOut(algorithm=name, reason=reason) for name, reason in self._planned.left_out],
            units_done=search.units_done,
            ended_by=ended_by,
            next_steps=[*self._advice(rows, ended_by)],
            warnings=list(dict.fromkeys([*self._warnings, *_constant_warnings(search)])),
        )

    def _evidence(self, tested: Metric | None) -> str:
        folds, seed = self._search.folds, self._request.seed
        count = len(folds.splits)
        how = (
            f"{count} folds of {folds.rows.size}" if count > 1 else f"{folds.splits[0].test.size} of {folds.rows.size}"
        )
        compared = f"Candidates are compared on {how} training rows (seed {seed})."
        if tested is not None:
            return f"{compared} The evaluation is of {tested.n} test rows, which no candidate has seen."
        return f"{compared} The evaluation is of resamples of their predictions, which choose and evaluate."

    def _advice(self, rows: Sequence[LeaderboardRow], ended_by: EndedBy) -> Iterator[str]:
        open_rows = [row for row in rows if row.state in {"waiting", "running", "paused", "skipped"}]
        if ended_by != "exhausted" and open_rows:
            yield f"{len(open_rows)} of {len(rows)} candidates lack some folds: more seconds try more of them."
        same = sum(bool(row.same_as_best) for row in rows)
        if same > 1:
            yield f"{same} candidates may be equally good: more rows would separate them, more seconds would not."


def _metric_in(metrics: Sequence[Metric], name: str) -> Metric | None:
    return next((metric for metric in metrics if metric.name == name and metric.label is None), None)


def _constant_warnings(search: SearchRun) -> Iterator[str]:
    """The best candidate may be no better than one prediction for all rows."""
    folds, training_set = search.folds, search.folds.training_set
    gains = []
    if not search.eligible:
        return
    best = search.eligible[0]
    for fold, split in enumerate(folds.splits):
        train, truth = folds.rows[split.train], folds.truth(fold)
        if training_set.task.of_classes:
            codes = np.asarray(training_set.target.codes)[train]
            shares = np.bincount(codes, minlength=len(training_set.classes)) / codes.size
            constant = np.tile(shares, (truth.size, 1))
        else:
            y = training_set.target.y[train]
            constant = np.full(truth.size, np.median(y) if search.metric == "mae" else y.mean())
        value = metric_of(search.metric, row_losses(search.metric, truth, constant))
        baseline = metric_of(search.metric, search.order.losses(best)[fold])
        gains.append(worse_by(search.metric, np.array([value]), np.array([baseline]))[0])
    lower = comparison(search, [best]).lower_gain(np.array(gains), 0.95) if len(gains) > 1 else gains[0]
    if not lower > 0:
        yield "No candidate predicts surely better than a constant."

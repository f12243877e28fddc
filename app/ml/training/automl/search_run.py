"""A search for the best model within a budget of seconds or units: waves of units, checkpoints, the final fit."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from app.ml.contract.progress import Stages
from app.ml.contract.timed_tasks import EachWithin, Timed
from app.ml.evaluation.row_losses import metric_of, row_losses
from app.ml.kinds.journal import Journal
from app.ml.numerics.compiled_kernels import AnyKernel, kernels_reached_from
from app.ml.training.automl.final_fit import FinalFit, final_fit
from app.ml.training.automl.proposals import BEST, MAX_CANDIDATES, Offer, Table, step_near
from app.ml.training.automl.time_budget import TimeBudget
from app.ml.training.automl.trial import Folds, Trial, Unit, try_unit
from app.ml.training.automl.unit_record import UnitRecord
from app.ml.training.automl.wave_order import WaveOrder, rungs

MAX_CHECKPOINT_SHARE, CHECKPOINT_PAUSE_SHARE = 0.15, 0.1
"""Shares of the budget that checkpoints take together, and that passes between two of them."""
PACKAGE = "app.ml.algorithms"
RESERVED_MEMBERS, MAX_ENSEMBLE_SHARE = 4, 0.25
"""Members of an ensemble for which time is kept, and the largest share of the budget that is kept so."""
NOTE = "The best of {} candidates was chosen by these rows."


class Limits(NamedTuple):
    """Promises of the served model."""

    microseconds_a_row: float | None = None
    size_bytes: int | None = None
    seconds_to_train: float | None = None


class Checkpoint(NamedTuple):
    """A model that could be served now."""

    candidate: int
    fit: FinalFit


class SearchRun:
    """The state of a search. The order of units is that of `WaveOrder`."""

    def __init__(
        self,
        table: Table,
        rows: pa.Table,
        folds: Folds,
        offers: Sequence[Offer],
        *,
        metric: str,
        budget: TimeBudget,
        each: EachWithin,
        limits: Limits,
        stages: Stages,
        max_units: int | None,
        seed: int,
        makes_model: bool,
        max_members: int,
        journal: Journal,
    ) -> None:
        self.table, self.rows, self.folds, self.offers = table, rows, folds, [*offers]
        self.metric, self.budget, self.limits = metric, budget, limits
        self._each, self._stages, self._seed = each, stages, seed
        self._max_units, self._makes_model, self._max_members = max_units, makes_model, max_members
        train_rows = max(split.train.size for split in folds.splits)
        codes = folds.training_set.groups
        groups = None if codes is None else [codes[folds.rows[split.test]] for split in folds.splits]
        steps = rungs(len(folds.splits), train_rows)
        self.order = WaveOrder(len(offers), steps, groups, tested=MAX_CANDIDATES)
        self.trials: dict[Unit, Trial] = {}
        self.seconds: dict[int, float] = {}
        self.units_done = self._steps = 0
        self.limits_broken = False
        self.checkpoint: Checkpoint | None = None
        self._record = UnitRecord(journal)
        self._checkpoint_share = 0.0

    # search

    def run(self) -> Literal["budget", "units", "exhausted"]:
        """Do units until the budget ends. Returns what ended it: budget, units or exhausted."""
        while True:
            self._report()
            left = self._units_left
            if left == 0:
                return "units"
            is_late = self._share >= 0.5 and bool(self.order.complete)
            wave = self.order.next_wave(self._propose, is_late=is_late)[:left]
            if not wave:
                return "exhausted"
            if not self._do(wave):
                return "budget"
            self.order.decide()
            self._keep_checkpoint()

    @property
    def _units_left(self) -> int | None:
        return None if self._max_units is None else max(0, self._max_units - self.units_done)

    @property
    def _share(self) -> float:
        """The share of the budget that is spent."""
        return self.budget.share if self._max_units is None else self.units_done / self._max_units

    def _do(self, wave: Sequence[Unit]) -> bool:
        """False if no unit of the wave could begin in the time that is left."""
        self._read_kernels({self.offers[unit.candidate].family for unit in wave})
        stored = self._record.of_earlier_attempts(self, wave)
        pending = [unit for unit in wave if unit not in stored]
        tasks = [partial(try_unit, self.folds, self.offers[unit.candidate].spec, unit) for unit in pending]
        begun = 0
        for unit in [unit for unit in wave if unit in stored]:
            begun += 1
            self._take(unit, stored[unit])
        for unit, outcome in zip(pending, self._each(Trial, tasks, partial(self._seconds_of, pending)), strict=True):
            begun += outcome.begun
            self._take(unit, outcome)
            self._record.add(self, unit, outcome)
        return begun > 0

    def _read_kernels(self, families: set[str]) -> None:
        """Read compiled loops from disk, so that not every process of a fit has to."""
        for kernel in frozenset[AnyKernel]().union(*(kernels_reached_from(f"{PACKAGE}.{name}") for name in families)):
            if not kernel.ready:
                kernel.read()

    def _seconds_of(self, wave: Sequence[Unit], place: int) -> float:
        """Time that the unit may take; 0: it would need more than is left, or nothing more of its candidate counts."""
        unit = wave[place]
        if self._max_units is not None:
            return math.inf
        left = self.budget.left - self.reserve
        is_wanted = self.order.states[unit.candidate] == "running" and self._predicted(unit) <= left
        return left if is_wanted else 0.0

    def _predicted(self, unit: Unit) -> float:
        offer = self.offers[unit.candidate]
        return self.budget.predict(offer.family, self._estimate(unit))

    def _estimate(self, unit: Unit) -> float:
        rows = self.folds.splits[unit.fold].train.size
        return self.offers[unit.candidate].seconds(rows if unit.rows is None else min(rows, unit.rows))

    def _take(self, unit: Unit, outcome: Timed[Trial]) -> None:
        candidate = unit.candidate
        self.seconds[candidate] = self.seconds.get(candidate, 0.0) + outcome.seconds
        if not outcome.begun:
            if self.order.states[candidate] == "running":
                self.order.end(candidate, "skipped", "Its next fit would have taken more time than was left.")
            return
        self.units_done += 1
        if self.order.states[candidate] != "running":
            return
        trial = outcome.result
        if trial is None:
            reason = "out_of_time: its fit was ended." if outcome.late else "The process of its fit died."
            self.order.end(candidate, "failed", reason)
            return
        self.budget.observe(self.offers[candidate].family, self._estimate(unit), outcome.seconds)
        if trial.error:
            self.order.end(candidate, "failed", trial.error)
            return
        losses = row_losses(self.metric, self.folds.truth(unit.fold), trial.predictions)
        if not np.isfinite(losses).all():
            self.order.end(candidate, "failed", f"Its {self.metric} is undefined on a fold.")
            return
        self.trials[unit] = trial
        self.order.add(unit, losses)
        if (broken := self._broken_limit(candidate, trial)) is not None:
            self.limits_broken = True
            self.order.end(candidate, "skipped", broken)

    def _broken_limit(self, candidate: int, trial: Trial) -> str | None:
        limits = self.limits
        if limits.size_bytes is not None and trial.state_bytes > limits.size_bytes:
            return f"Its state takes {trial.state_bytes} bytes, and the limit is {limits.size_bytes}."
        if limits.seconds_to_train is not None and self.final_seconds(candidate) > limits.seconds_to_train:
            return f"Its training takes longer than {limits.seconds_to_train:g} seconds."
        if limits.microseconds_a_row is not None and trial.microseconds_a_row > limits.microseconds_a_row:
            return f"It takes {trial.microseconds_a_row:.3g} µs a row, and the limit is {limits.microseconds_a_row:g}."
        return None

    def _propose(self) -> int | None:
        """Admit a step near the best candidates; None: there is none."""
        if len(self.offers) >= MAX_CANDIDATES:
            return None
        best = [self.offers[candidate] for candidate in self.eligible[:BEST]]
        offer = step_near(self.table, best, self._steps, self.offers, self._seed)
        self._steps += 1
        if offer is None:
            return None
        self.offers.append(offer)
        return self.order.admit()

    @property
    def eligible(self) -> list[int]:
        """Candidates with all folds that keep the limits, the best first."""
        return [candidate for candidate in self.order.complete if self.order.states[candidate] == "done"]

    # the model

    @property
    def reserve(self) -> float:
        """Seconds kept for the final fit, of an ensemble where one may be made."""
        if not self._makes_model:
            return 0.0
        eligible = self.eligible[: min(self._max_members, RESERVED_MEMBERS)]
        first = self.final_seconds(eligible[0] if eligible else 0)
        offers = [self.offers[offer_number] for offer_number in eligible[1:]]
        others = sum(self.budget.predict(offer.family, self._final_estimate(offer)) for offer in offers)
        return first + min(MAX_ENSEMBLE_SHARE * self.budget.seconds, others)

    def final_seconds(self, candidate: int) -> float:
        """Predicted seconds of the final fit of a candidate."""
        offer = self.offers[candidate]
        return self.budget.predict_final(offer.family, self._final_estimate(offer))

    def _final_estimate(self, offer: Offer) -> float:
        return max(offer.seconds(self.folds.rows.size), offer.planned.seconds - 0.25)

    def finish(self, offer: Offer) -> FinalFit | None:
        """The final fit of a candidate or an ensemble; None: it failed, or its time was up."""
        task = final_fit(offer.planned, self.rows, self.table.sheet, NOTE.format(len(self.offers)))
        limit: Callable[[int], float] = lambda _: self.budget.left  # noqa: E731
        (outcome,) = self._each(FinalFit, [task], limit)
        if outcome.result is None or outcome.result.error:
            return None
        self.budget.observe_final(offer.family, self._final_estimate(offer), outcome.seconds)
        return outcome.result

    def _keep_checkpoint(self) -> None:
        """Fit the leader as it would be served, so that there is a model whatever happens next."""
        eligible = self.eligible
        if not self._makes_model or not eligible or self._units_left == 0:
            return
        best, checkpoint = eligible[0], self.checkpoint
        if checkpoint is not None:
            seconds = self.budget.checkpoint_seconds + self.final_seconds(best)
            too_soon = self._share < self._checkpoint_share + CHECKPOINT_PAUSE_SHARE
            if checkpoint.candidate == best or too_soon or seconds > MAX_CHECKPOINT_SHARE * self.budget.seconds:
                return
        before = self.budget.spent
        fit = self.finish(self.offers[best])
        self.budget.checkpoint_seconds += self.budget.spent - before
        self._checkpoint_share = self._share
        if fit is None:
            self.order.end(best, "failed", "Its fit of all training rows failed.")
        else:
            self.checkpoint = Checkpoint(best, fit)
            self._record.replace_checkpoint(best, fit)

    # looks

    def predictions(self, candidate: int) -> list[np.ndarray]:
        """Predictions of each fold by the fit without it."""
        return [self.trials[Unit(candidate, fold, None)].predictions for fold in range(len(self.folds.splits))]

    def trials_of(self, candidate: int) -> list[Trial]:
        return [trial for unit, trial in self.trials.items() if unit.candidate == candidate]

    def estimate(self, candidate: int) -> float:
        """Estimated seconds of its fit of one fold."""
        return self._estimate(Unit(candidate, 0, None))

    def _report(self) -> None:
        leader = self.order.leader
        measures, message = {}, "fitting the first candidates"
        if leader is not None and (losses := self.order.losses(leader)):
            value = metric_of(self.metric, np.concatenate(losses))
            measures = {self.metric: value}
            name = self.offers[leader].family
            message = f"{len(self.offers)} candidates, {self.units_done} fits; {name} leads: {self.metric} {value:.5g}"
        self._stages(min(0.9, 0.9 * self._share), message, measures)

"""Units of a search in its journal: written as they are done, and read by an attempt after a crash."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from app.ml.contract.timed_tasks import Timed
from app.ml.evaluation.row_losses import metric_of, row_losses
from app.ml.kinds.journal import Journal, StoredUnit
from app.ml.training.automl.final_fit import FinalFit
from app.ml.training.automl.proposals import Offer
from app.ml.training.automl.trial import Folds, Trial, Unit

MAX_PREDICTION_BYTES = 64 << 20
"""Predictions that are stored for one job; units beyond are done again after a crash."""


class RunningSearch(Protocol):
    """The facts of a search that its units rest on."""

    offers: list[Offer]
    folds: Folds
    metric: str


class UnitRecord:
    """The units of one search."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._stored = {_key(unit.outcome): unit for unit in journal.units}
        self._bytes = sum(len(unit.payload) for unit in journal.units)

    def of_earlier_attempts(self, run: RunningSearch, wave: Sequence[Unit]) -> dict[Unit, Timed[Trial]]:
        """Units of the wave that need not be done again."""
        keys = {unit: _key(_described(run, unit)) for unit in wave}
        return {unit: _trial(self._stored[key]) for unit, key in keys.items() if _is_complete(self._stored.get(key))}

    def add(self, run: RunningSearch, unit: Unit, outcome: Timed[Trial]) -> None:
        """Store a unit that was done."""
        trial = outcome.result
        if trial is None:
            return
        described = _described(run, unit) | {
            "task": str(run.folds.training_set.task.value),
            "metric": run.metric,
            "folds": len(run.folds.splits),
            "training_rows": int(run.folds.rows.size),
            "seconds": outcome.seconds,
            "size_bytes": trial.state_bytes,
            "microseconds_a_row": trial.microseconds_a_row,
            "error": trial.error,
            "shape": list(trial.predictions.shape),
            "value": None if trial.error else _value(run, unit, trial),
        }
        payload = trial.predictions.tobytes()
        self._bytes += len(payload)
        self._journal.add_unit(StoredUnit(described, payload if self._bytes <= MAX_PREDICTION_BYTES else b""))

    def replace_checkpoint(self, candidate: int, fit: FinalFit) -> None:
        """Store the model of a candidate."""
        head: dict[str, Any] = {**fit.head, "note": {"candidate": candidate}}
        self._journal.replace_checkpoint(fit.blob.tobytes(), head, fit.seen.tobytes(), fit.reference.tobytes())


def _described(run: RunningSearch, unit: Unit) -> dict[str, Any]:
    offer = run.offers[unit.candidate]
    return {
        "candidate": unit.candidate,
        "algorithm": offer.family,
        "parameters": offer.parameters,
        "fold": unit.fold,
        "rows": unit.rows,
    }


def _key(described: Mapping[str, Any]) -> str:
    """Text by which the same unit is found again, whatever its candidate's number."""
    parts = [described[name] for name in ("algorithm", "parameters", "fold", "rows")]
    return json.dumps(parts, sort_keys=True)


def _value(run: RunningSearch, unit: Unit, trial: Trial) -> float | None:
    value = metric_of(run.metric, row_losses(run.metric, run.folds.truth(unit.fold), trial.predictions))
    return value if np.isfinite(value) else None


def _is_complete(unit: StoredUnit | None) -> bool:
    return unit is not None and bool(unit.payload or unit.outcome["error"])


def _trial(unit: StoredUnit) -> Timed[Trial]:
    outcome = unit.outcome
    predictions = np.frombuffer(unit.payload, np.float32).reshape(outcome["shape"])
    trial = Trial(predictions, outcome["size_bytes"], outcome["microseconds_a_row"], outcome["error"])
    return Timed(trial, outcome["seconds"])

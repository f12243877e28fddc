"""The leaderboard of a search that ended before its end, from the units that were stored."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.ml.kinds.journal import StoredParts
from app.ml.statistics.metric_value import fold_mean
from app.ml.training.automl.automl_request import AutomlRequest
from app.ml.training.automl.automl_result import AutomlResult
from app.ml.training.automl.leaderboard import Comparison, LeaderboardRow
from app.ml.training.search.ranking_criteria import higher_is_better

ENDS = {
    "cancel": "The job was cancelled",
    "limit": "The job reached its time limit",
    "crash": "The job ended because its process or its worker died, or of an error",
}


def partial_leaderboard(request: AutomlRequest, parts: StoredParts) -> AutomlResult:
    """parts: with at least one unit."""
    first, candidates = parts.outcomes[0], _by_candidate(parts.outcomes)
    metric, folds = str(first["metric"]), int(first["folds"])
    values = {number: _values(units) for number, units in candidates.items()}
    complete = [number for number, each in values.items() if each.size == folds]
    sign = -1 if higher_is_better(metric) else 1
    ranked = sorted(complete, key=lambda number: (sign * values[number].mean(), number))
    compared = Comparison(metric, [values[number] for number in ranked], folds)
    differences = dict(zip(ranked, compared.differences, strict=True)) if ranked and folds > 1 else {}
    served = None if parts.note is None else int(parts.note["candidate"])
    rows = [
        _row(number, candidates[number], values[number], metric, ranked).model_copy(
            update=dict(zip(("behind", "same_as_best"), differences.get(number, (None, None)), strict=True))
        )
        for number in sorted(candidates)
    ]
    warning = f"{ENDS[parts.ended_by]}: this is what was stored by then."
    lacking = [] if served is not None or request.model is None else ["No version was made: no model was stored yet."]
    return AutomlResult(
        kind="automl",
        task=str(first["task"]),
        metric=metric,
        better="higher" if higher_is_better(metric) else "lower",
        chosen=served,
        candidates=rows,
        evidence=f"Candidates are compared on {folds} folds of {first['training_rows']} training rows (seed "
        f"{request.seed}).",
        units_done=len(parts.outcomes),
        ended_by=parts.ended_by,
        search_seconds=round(sum(float(outcome["seconds"]) for outcome in parts.outcomes), 3),
        warnings=[warning, *lacking],
    )


def _by_candidate(outcomes: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    outcomes_of = defaultdict[int, list[Mapping[str, Any]]](list)
    for outcome in outcomes:
        outcomes_of[int(outcome["candidate"])].append(outcome)
    return outcomes_of


def _values(units: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """The metric of each fold of all rows, in the order of the folds."""
    by_fold = {unit["fold"]: unit["value"] for unit in units if unit["rows"] is None and unit["value"] is not None}
    return np.array([by_fold[fold] for fold in sorted(by_fold)], np.float64)


def _row(
    number: int, units: Sequence[Mapping[str, Any]], values: np.ndarray, metric: str, ranked: Sequence[int]
) -> LeaderboardRow:
    error = next((str(unit["error"]) for unit in units if unit["error"]), None)
    is_complete = number in ranked
    sound = [unit for unit in units if not unit["error"]]
    micros = [float(unit["microseconds_a_row"]) for unit in sound]
    return LeaderboardRow(
        id=number,
        algorithm=str(units[0]["algorithm"]),
        parameters=dict(units[0]["parameters"]),
        state="failed" if error else "done" if is_complete else "running",
        reason=error,
        rank=ranked.index(number) + 1 if is_complete else None,
        validation=fold_mean(metric, values) if values.size else None,
        microseconds_a_row=float(np.median(micros)) if micros else None,
        size_bytes=round(float(np.mean([int(unit["size_bytes"]) for unit in sound]))) if sound else None,
        seconds=round(sum(float(unit["seconds"]) for unit in units), 3),
    )

"""Hold-out reuse: the best of many models on the same rows looks better than it is (LION 3.2)."""

from collections.abc import Mapping

from app.ml.contract.algorithm import JSON
from app.ml.evaluation.report import Reuse


def held_out(data_digest: str, target: str | None, how: Mapping[str, JSON], seed: int) -> Reuse:
    """The rows that a training holds out. how: its validation, as the receipt has it."""
    by = "" if how.get("group") is None else f", by group {how['group']!r}"
    if how.get("time") is not None:
        latest = f"latest {how['test_fraction']:g} by {how['time']!r}{_of(target)}"
        return Reuse(data_digest=data_digest, rows=latest)
    return Reuse(data_digest=data_digest, rows=f"{how['test_fraction']:g} held out with seed {seed}{by}{_of(target)}")


def held_out_by_all(data_digest: str, target: str | None) -> Reuse:
    return Reuse(data_digest=data_digest, rows=f"held out by every member{_of(target)}")


def whole(data_digest: str, target: str | None) -> Reuse:
    return Reuse(data_digest=data_digest, rows=f"all rows{_of(target)}")


def without(data_digest: str, target: str | None, rows: int) -> Reuse:
    """All rows but so many that a training has seen."""
    return Reuse(data_digest=data_digest, rows=f"all but {rows} training rows{_of(target)}")


def optimism(uses: int) -> list[str]:
    """The warning that goes with a count."""
    if uses < 2:
        return []
    warning = (
        f"These rows have been evaluated {uses} times by now: the best of several is partly the luckiest, and its "
        "metrics are optimistic. Evaluate it once more on rows that were never used."
    )
    return [warning]


def _of(target: str | None) -> str:
    return "" if target is None else f", target {target!r}"

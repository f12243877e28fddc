"""How often the same rows have judged: the best of many by the same figures looks better than it is (B3.10, B3.16)."""

from app.ml.report import Reuse


def held_out(data_digest: str, target: str | None, fraction: float, seed: int) -> Reuse:
    """The rows that a training sets aside."""
    return Reuse(data_digest=data_digest, rows=f"{fraction:g} held out with seed {seed}{_of(target)}")


def held_out_by_all(data_digest: str, target: str | None) -> Reuse:
    return Reuse(data_digest=data_digest, rows=f"held out by every member{_of(target)}")


def whole(data_digest: str, target: str | None) -> Reuse:
    return Reuse(data_digest=data_digest, rows=f"all rows{_of(target)}")


def optimism(uses: int) -> list[str]:
    """The warning that goes with a count."""
    if uses < 2:
        return []
    said = f"These rows have judged {uses} times by now: the best of several is partly the luckiest, and its figures "
    return [said + "are optimistic. Judge it once more on rows that were never used."]


def _of(target: str | None) -> str:
    return "" if target is None else f", target {target!r}"

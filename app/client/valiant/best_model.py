"""The outcome of a search for the best model: its leaderboard, and the version that was made."""

from typing import Any

from .model_version import Version
from .operation import M, operation
from .record import Record
from .steps import Steps
from .summary_table import SummaryTable


class BestModel(Record[M]):
    """Leaderboard of a search; `fields` holds the result of the job, with the model and the version that it made."""

    model: str | None
    version: int | None
    state: str
    task: str
    metric: str
    better: str
    chosen: int | None
    candidates: list[dict[str, Any]]
    ensemble: dict[str, Any] | None
    pareto: list[int]
    evaluation: dict[str, Any] | None
    evidence: str
    left_out: list[dict[str, str]]
    units_done: int
    ended_by: str
    next_steps: list[str]
    warnings: list[str]

    def __repr__(self) -> str:
        made = "no version" if self.version is None else f"{self.model} {self.version}"
        return f"<BestModel {made}: {self.metric} {self._evaluated}, {len(self.candidates)} candidates>"

    @property
    def _evaluated(self) -> str:
        return "not known" if self.evaluation is None else str(self.evaluation["display"])

    def overview(self) -> SummaryTable:
        """Candidates in their rank, then those without one; below, the metric of the served model and advice."""
        ranked = sorted(self.candidates, key=lambda each: (each.get("rank") is None, each.get("rank"), each["id"]))
        rows = [
            [
                each.get("rank"), each["algorithm"], _shown(each.get("validation")), _shown(each.get("behind")),
                "yes" if each.get("same_as_best") else "", each.get("microseconds_a_row"), each.get("size_bytes"),
                each.get("seconds"), each["state"], _parameters(each["parameters"]),
            ]
            for each in ranked
            if each["state"] != "waiting"
        ]  # fmt: skip
        headings = (
            "rank", "algorithm", self.metric, "behind", "as good", "µs a row", "bytes", "seconds", "state", "parameters"
        )  # fmt: skip
        title = f"{repr(self)[1:-1]}, {self.units_done} fits, ended by {self.ended_by}"
        notes = [self.evidence, *(self.warnings or []), *(self.next_steps or [])]
        return SummaryTable(title, headings, rows, notes)

    @operation
    def served(self) -> Steps[Version[M] | None]:
        """The version that the search made; None: it made none."""
        if self.model is None or self.version is None:
            return None
        return Version(self.driver, (yield from self._json("GET", "models", self.model, "versions", self.version)))


def _shown(metric: dict[str, Any] | None) -> str:
    return "" if metric is None else str(metric["display"])


def _parameters(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())

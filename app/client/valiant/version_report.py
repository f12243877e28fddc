"""The report of a version, and the HTML page that holds its tables and plots."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from .operation import M
from .record import Record
from .summary_table import SummaryTable, metric_name, metrics_table

THEMES = "light", "dark"
VEGA_LITE = "application/vnd.vegalite.v5+json"
"""Media type by which notebooks draw a specification."""
NO_BOUND: dict[str, Any] = {"certificates": []}
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  background: light-dark(#fff, #16181a); color: light-dark(#1d2125, #dde1e5); overflow-wrap: break-word }}
div {{ overflow-x: auto }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
caption {{ text-align: left; font-weight: 600; padding-bottom: .3rem }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem 1rem .3rem 0; font-variant-numeric: tabular-nums;
  border-bottom: 1px solid light-dark(#ddd, #3a3f44) }}
section {{ margin: 2.5rem 0; white-space: pre-line }}
h2 {{ font-size: 1.2rem }}
img {{ max-width: 100%; height: auto }}
</style>
<h1>{title}</h1>
<p>{evidence}</p>
{warnings}
{tables}
{plots}
</html>
"""


class Plot(dict[str, Any]):
    """A Vega-Lite specification, which notebooks draw."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {VEGA_LITE: dict(self), "text/plain": repr(self)}


class Metric(NamedTuple):
    """A metric with its confidence interval; `lower` and `upper` are None where it has none."""

    value: float | None
    lower: float | None
    upper: float | None
    n: int
    display: str
    """Rounded to the error bar, for people."""


class Report(Record[M]):
    """Everything that was learned at fit time; `fields` holds it whole."""

    task: str
    evidence: str
    rows_train: int
    rows_test: int
    seed: int
    test: list[dict[str, Any]]
    train: list[dict[str, Any]]
    cross_validation: list[dict[str, Any]] | None
    curves: list[dict[str, Any]]
    guarantees: dict[str, Any] | None
    summary: Any
    converged: bool
    iterations: int
    columns: list[str]
    warnings: list[str]

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Metrics on unseen rows by name, of one class as `name[class]`; without any, of cross-validation."""
        return {metric_name(row): Metric._make(map(row.get, Metric._fields)) for row in self._measured()}

    def _measured(self) -> list[dict[str, Any]]:
        return self.test or self.cross_validation or self.train

    def overview(self) -> SummaryTable:
        return metrics_table(self.evidence, self._measured(), self.warnings)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {metric.display}" for name, metric in self.metrics.items())
        return f"<Report of a {self.task}: {shown}>"

    def __str__(self) -> str:
        return self.overview().text()


def page(title: str, report: Report[Any], drawn: Sequence[tuple[Mapping[str, str], Mapping[str, bytes]]]) -> str:
    """HTML of a report. drawn: each plot with its SVG by theme; the reader's system chooses between them."""
    warnings = "".join(f"<li>{escape(warning)}</li>" for warning in report.warnings)
    return PAGE.format(
        title=escape(title),
        evidence=escape(report.evidence),
        warnings=f"<ul>{warnings}</ul>" if warnings else "",
        tables="\n".join(f"<div>{table.html()}</div>" for table in _tables(report)),
        plots="\n".join(_section(plot, pictures) for plot, pictures in drawn),
    )


def _tables(report: Report[Any]) -> list[SummaryTable]:
    """The metrics of each kind of rows, and the guarantees."""
    measured = {"Test rows": report.test, "Cross-validation": report.cross_validation, "Training rows": report.train}
    bounds = [[each["name"], each["statement"]] for each in (report.guarantees or NO_BOUND)["certificates"]]
    guarantees = [SummaryTable("Guarantees", ("bound", "statement"), bounds)] if bounds else []
    return [*(metrics_table(title, rows) for title, rows in measured.items() if rows), *guarantees]


def _section(plot: Mapping[str, str], pictures: Mapping[str, bytes]) -> str:
    light, dark = (f"data:image/svg+xml;base64,{b64encode(pictures[theme]).decode()}" for theme in THEMES)
    title, description = escape(plot["title"]), escape(plot["description"])
    return (
        f'<section><h2>{title}</h2><picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img alt="{title}" src="{light}"></picture><p>{description}</p></section>'
    )

"""The report of a drift job: a table for people, and an HTML page with the histograms of each column."""

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from .failures import ValiantError
from .operation import M
from .record import Record
from .summary_table import SummaryTable, interval, metric_name
from .version_report import PAGE

HISTOGRAMS = 30
"""Histograms of a page, those of the first columns of the report."""
BAR, HEIGHT = 14, 120
"""Width of a bar and height of a histogram, in pixels."""


class DriftReport(Record[M]):
    """Drift of the rows of a dataset from a reference; `fields` holds the result of the job."""

    reference: str | None
    current: str
    model: str | None
    version: int | None
    reference_rows: int
    current_rows: int
    tolerance_psi: float
    significance: float
    drifted: int
    columns: list[dict[str, Any]]
    quality: list[dict[str, Any]] | None
    warnings: list[str]

    @property
    def drifted_columns(self) -> list[str]:
        """Names of the columns that have drifted, those first that change predictions; predictions are in brackets."""
        names = (f"({each['column']})" if _is_predicted(each) else each["column"] for each in self.columns_drifted)
        return list(dict.fromkeys(names))

    @property
    def columns_drifted(self) -> list[dict[str, Any]]:
        """Every distribution that has drifted, in the order of the report."""
        return [each for each in self.columns if each["drifted"]]

    def overview(self) -> SummaryTable:
        title = (
            f"{self.drifted} of {len(self.columns)} distributions have drifted: {self.current_rows} rows against "
            f"{self.reference_rows}, tolerance {self.tolerance_psi:g}, significance {self.significance:g}"
        )
        rows = [
            [
                each["column"], each["aspect"], each["psi"], each["p_holm"], "yes" if each["drifted"] else "",
                each.get("prediction_change"),
            ]
            for each in self.columns
        ]  # fmt: skip
        headings = "column", "of", "PSI", "p (Holm)", "drifted", "prediction change"
        return SummaryTable(title, headings, rows, self.warnings)

    def metrics(self) -> list[SummaryTable]:
        """Metrics of the model on both sets of rows; empty: it was not measured."""
        rows = [_pair_cells(pair) for pair in self.quality or ()]
        headings = "metric", "reference", "", "current", ""
        return [SummaryTable("Metrics of the model", headings, rows)] if rows else []

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML page that needs nothing else."""
        Path(path).write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        tables = [self.overview()._replace(notes=()), *self.metrics()]
        warnings = "".join(f"<li>{escape(warning)}</li>" for warning in self.warnings)
        against = "the rows of its training" if self.reference is None else f"dataset {self.reference}"
        whose = "" if self.model is None else f"{self.model}, version {self.version}: "
        return PAGE.format(
            title="Drift",
            evidence=escape(f"{whose}dataset {self.current} against {against}."),
            warnings=f"<ul>{warnings}</ul>" if warnings else "",
            tables="\n".join(f"<div>{table.html()}</div>" for table in tables),
            plots="\n".join(map(_histogram, self.columns[:HISTOGRAMS])),
        )

    def __repr__(self) -> str:
        return f"<DriftReport: {self.drifted} of {len(self.columns)} distributions have drifted>"

    def __str__(self) -> str:
        return self.overview().text()


class DriftFound(ValiantError):
    """Drift that a command was to fail on."""

    def __init__(self, report: DriftReport[Any], columns: list[str]) -> None:
        super().__init__(f"drift of {', '.join(columns)}")
        self.report = report


def _is_predicted(column: Mapping[str, Any]) -> bool:
    return bool(column["aspect"] == "prediction")


def _pair_cells(pair: Mapping[str, Any]) -> list[str]:
    return [metric_name(pair["current"]), *_shown(pair.get("reference")), *_shown(pair["current"])]


def _shown(metric: Mapping[str, Any] | None) -> tuple[str, str]:
    return ("", "") if metric is None else (metric["display"], interval(metric))


def _histogram(column: Mapping[str, Any]) -> str:
    """Bars of the reference beside those of the current rows, in every bin."""
    bins = column["histogram"]
    largest = max([each[side] for each in bins for side in ("reference", "current")] or [1.0]) or 1.0
    bars = []
    for place, each in enumerate(bins):
        for offset, side in enumerate(("reference", "current")):
            height = HEIGHT * each[side] / largest
            left = place * (2 * BAR + 6) + offset * BAR
            note = escape(f"{each['label']}: {side} {each[side]:.1%}")
            bars.append(
                f'<rect x="{left}" y="{HEIGHT - height:.1f}" width="{BAR - 1}" height="{height:.1f}" '
                f'fill="{("#8a8f98", "#2f7fd6")[offset]}"><title>{note}</title></rect>'
            )
    width = max(len(bins) * (2 * BAR + 6), 1)
    title = escape(f"{column['column']} ({column['aspect']}), PSI {column['psi']:.3g}")
    text = "grey: reference, blue: current" + ("; drifted" if column["drifted"] else "")
    ends = escape(f"{bins[0]['label']} … {bins[-1]['label']}") if bins else ""
    drawn = f'<svg role="img" aria-label="{title}" width="{width}" height="{HEIGHT}">{"".join(bars)}</svg>'
    return f"<section><h2>{title}</h2>{drawn}<p>{ends}\n{text}</p></section>"

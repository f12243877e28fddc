"""Parts of an algorithm's summary that plots read, where the summary has them."""

from typing import Any

from app.ml.evaluation.report import Report

SHARES = {"explained_variance_ratio": "variance", "separation_ratio": "separation"}
"""Parts of the summary of a projection with a share of each component."""


def part(summary: Any, name: str) -> Any:
    """None where the summary has no part of that name."""
    return summary.get(name) if isinstance(summary, dict) else None


def entries(summary: Any, name: str) -> list[dict[str, Any]]:
    """Objects of a list; empty where there is no such list."""
    value = part(summary, name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def rows_of(summary: Any, name: str, width: int) -> list[list[float]]:
    """A list of numbers, or of such lists, each of this width; empty for anything else."""
    value = part(summary, name)
    rows = [] if not isinstance(value, list) or not value else value if isinstance(value[0], list) else [value]
    fits = width and all(len(row) == width and all(isinstance(cell, int | float) for cell in row) for row in rows)
    return rows if fits else []


def component_shares(report: Report) -> tuple[str, list[float]]:
    """Shares of the components of a projection, and the quantity they are shares of; empty where it has none."""
    for key, kind in SHARES.items():
        value = part(report.summary, key)
        if isinstance(value, list) and value and all(isinstance(share, float | int) for share in value):
            return kind, value
    return "", []


def coefficients(report: Report) -> list[list[float]]:
    """Coefficients for the columns that the algorithm saw, a list for each score; empty where there are none."""
    return rows_of(report.summary, "coefficients", len(report.columns))

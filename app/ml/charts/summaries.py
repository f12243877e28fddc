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
    found = part(summary, name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def rows_of(summary: Any, name: str, width: int) -> list[list[float]]:
    """A list of numbers, or of such lists, each of this width; empty for anything else."""
    found = part(summary, name)
    rows = [] if not isinstance(found, list) or not found else found if isinstance(found[0], list) else [found]
    fits = width and all(len(row) == width and all(isinstance(one, int | float) for one in row) for row in rows)
    return rows if fits else []


def component_shares(report: Report) -> tuple[str, list[float]]:
    """Shares of the components of a projection, and the quantity they are shares of; empty where it has none."""
    for key, kind in SHARES.items():
        found = part(report.summary, key)
        if isinstance(found, list) and found and all(isinstance(one, float | int) for one in found):
            return kind, found
    return "", []


def coefficients(report: Report) -> list[list[float]]:
    """Coefficients for the columns that the algorithm saw, a list for each score; empty where there are none."""
    return rows_of(report.summary, "coefficients", len(report.columns))

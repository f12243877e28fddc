"""Curves of a report by name, and the curves that a fit monitored."""

from app.ml.evaluation.report import Report, ReportCurve

MEASURED = {"roc", "precision_recall", "observed over predicted", "residual over predicted", "fit", "observed"}
"""Names of curves that are of predictions; those of one class among several have its label behind."""


def named(report: Report, name: str) -> ReportCurve | None:
    return next((curve for curve in report.curves if curve.name == name), None)


def curve_rows(report: Report, name: str) -> list[dict[str, float]]:
    """Points (x, y) of the curve of this name; none where there is no such curve."""
    curve = named(report, name)
    return [] if curve is None else [{"x": x, "y": y} for x, y in zip(curve.x or [], curve.y, strict=True)]


def monitored(report: Report) -> list[ReportCurve]:
    """Curves with a value for each iteration."""
    return [curve for curve in report.curves if curve.name.split(" ")[0] not in MEASURED and curve.name not in MEASURED]

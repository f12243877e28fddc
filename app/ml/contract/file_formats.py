"""Formats of model files: those of other libraries, and the artifacts of this service."""

from typing import Literal, TypeAlias

from app.base.errors import ValiantError

FileFormat: TypeAlias = Literal["lightgbm", "onnx", "scikit-learn", "valiant", "xgboost"]
GuardedFormat: TypeAlias = Literal["onnx", "valiant"]
"""Those that an operator must allow a project first: what predicts with them, wherever it runs, is a large library in
C++, or compiled loops that trust the arrays of a model."""
BOOSTED = {"lightgbm", "xgboost"}
"""Formats with boosting rounds."""
NOT_BOOSTED = "Only files of LightGBM and XGBoost have boosting rounds."


class FormatNotAllowed(ValiantError):
    """Files of a format that could harm a process that predicts, for projects that an operator trusts."""

    code, status, title = "format_not_allowed", 403, "The project may not import this format"
    remedy = 'An operator allows it with PATCH /v1/projects/{project} and {"file_formats": ["onnx", "valiant"]}.'

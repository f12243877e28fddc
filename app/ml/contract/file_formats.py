"""Formats of model files that other libraries write."""

from typing import Literal, TypeAlias

from app.errors import ValiantError

FileFormat: TypeAlias = Literal["lightgbm", "onnx", "scikit-learn", "xgboost"]
GuardedFormat: TypeAlias = Literal["onnx"]
"""Those that an operator must allow a project first: a large library in C++ reads them, wherever they predict."""


class FormatNotAllowed(ValiantError):
    """Files of a format that is read by a large library in C++, for projects that an operator trusts."""

    code, status, title = "format_not_allowed", 403, "The project may not import this format"
    remedy = 'An operator allows it with PATCH /v1/projects/{project} and {"file_formats": ["onnx"]}.'

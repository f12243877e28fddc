"""Formats of model files that other libraries write."""

from typing import Literal, TypeAlias

FileFormat: TypeAlias = Literal["lightgbm", "onnx", "scikit-learn", "xgboost"]
GuardedFormat: TypeAlias = Literal["onnx"]
"""Those that an operator must allow a project first: a large library in C++ reads them, wherever they predict."""

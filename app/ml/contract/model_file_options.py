"""Choices of the reader of a model file that the file itself leaves open."""

from typing import NamedTuple


class ModelFileOptions(NamedTuple):
    """Boosting rounds that are read."""

    rounds: int | None = None
    """From the first; None: all, or with `best` those up to the best one."""
    best: bool = False
    """Rounds up to the one that the file names as the best of early stopping, as `XGBClassifier` predicts."""


ALL = ModelFileOptions()

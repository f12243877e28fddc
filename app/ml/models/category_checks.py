"""Checks that the trees of a stored model know every category of its inputs.

Compiled code looks up a category by its code and does not look whether it is there.
"""

from typing import Any

import numpy as np

from app.base.errors import CorruptModel
from app.ml.contract.algorithm import FittedLearner, Labels
from app.ml.models.member_view import View
from app.ml.numerics.trees.forest import Trees


def demand_categories(state: Any, levels: Labels) -> None:
    """Raises CorruptModel where trees of a state test categories of other columns, or of fewer categories.

    levels: (d,) categories of the columns that the state predicts from, 0 of a number. A state whose learners predict
    from other columns names theirs in a method `learners_with_levels`.
    """
    if isinstance(state, Trees):
        _demand_known(state.levels, levels)
    elif isinstance(state, FittedLearner):
        view = state.view
        demand_categories(state.state, view.preparation.layout.levels if isinstance(view, View) else levels)
    elif hasattr(state, "learners_with_levels"):
        for learner, seen in state.learners_with_levels(levels):
            demand_categories(learner, seen)
    elif isinstance(state, tuple | list):
        for part in state:
            demand_categories(part, levels)


def _demand_known(trees: Labels, levels: Labels) -> None:
    columns = np.flatnonzero(trees)
    inside = not columns.size or int(columns.max()) < levels.size
    if not inside or not ((levels[columns] > 0) & (levels[columns] <= trees[columns])).all():
        raise CorruptModel("The stored trees do not know all categories of the inputs.")

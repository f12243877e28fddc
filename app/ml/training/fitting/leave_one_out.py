"""Conditions of the closed form of leave-one-out: preparation depends on the rows too (LION 3.2).

The fit of all rows but one learns its own preparation. The closed form has but one, of all rows. The two agree if

- columns are not scaled, or it does not change the predictions (least squares with an intercept);
- no missing number is filled in from the other rows;
- no category is rare enough to count as `other`, which another row may change;
- classes have no weights, which would change with the row;
- a row is not the only one of its category: these rows are left to a fit of their own, as are those that the
  algorithm leaves open.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels
from app.ml.contract.sparse_rows import dense
from app.ml.preparation.preparation import Preparation
from app.ml.training.rows.training_set import TrainingSet

UNDERSTOOD = {"scaling", "imputation", "max_levels", "target_minimum", "target_maximum", "detect_target_minimum"}


def closed_form(training_set: TrainingSet, rows: Labels) -> NDArray[Any] | None:
    """Predictions for each of these rows by a fit of the others, NaN where that fit is needed; None: everywhere."""
    form = training_set.algorithm.leave_one_out
    if form is None or training_set.class_weight is not None:
        return None
    preparation = training_set.prepare(rows)
    if not steady(training_set, preparation, rows, unscaled=form.unscaled(training_set.params)):
        return None
    data = training_set.data(preparation, rows)
    data = replace(data, x=dense(data.x))
    predictions = form.predict(training_set.params, data)
    indicators = data.x[:, sum(column.levels is None for column in preparation.inputs) :]
    alone = indicators[:, indicators.sum(axis=0) == 1].any(axis=1)
    predictions[alone] = np.nan
    return predictions


def steady(training_set: TrainingSet, preparation: Preparation, rows: Labels, *, unscaled: bool) -> bool:
    """True if the preparation without any one row gives the same predictions as that of all of them."""
    how = training_set.preprocessing
    if not isinstance(how.imputation, str):
        return False
    if how.model_dump(exclude=UNDERSTOOD, exclude_defaults=True):
        return False
    if how.scale != "none" and not unscaled:
        return False
    numbers = [place for place, column in enumerate(preparation.inputs) if column.levels is None]
    filled = any(np.isnan(training_set.raw.values[training_set.target.rows[rows], place]).any() for place in numbers)
    return not filled and not preparation.learned.other.any()

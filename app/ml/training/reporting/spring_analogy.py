"""A linear fit as a rigid bar on springs, one pulling it to every row (LION 4.6).

The spring of a row has the strength k of its weight, 1/σ² where errors are known, and the length r = y − prediction.
Its energy is ½kr², so that together they hold half of χ². Least squares is where that is least: the forces kr add
up to 0 (the bar does not rise), as do the torques krx of every column (it does not turn). A penalty is one more
spring on every coefficient; the torques then are what it pulls with.
"""

import numpy as np

from app.ml.contract.algorithm import Labels
from app.ml.contract.sparse_rows import mapped
from app.ml.evaluation.report import Springs
from app.ml.evaluation.splits import evenly
from app.ml.preparation.target_transform import transformed
from app.ml.training.fitting.fit import Fitted
from app.ml.training.rows.training_set import TrainingSet

SHOWN = 200
RESTS = 1e-8
"""Tolerance, as a share of the forces that there would be if none of them cancelled another."""


def springs(training_set: TrainingSet, fitted: Fitted, rows: Labels) -> Springs | None:
    """Forces of a regression by least squares, else None. rows: fitted on, as numbers of the dataset."""
    if not training_set.task.of_numbers or not training_set.algorithm.least_squares:
        return None
    if fitted.preparation.sparse:
        return None
    data = transformed(training_set.preprocessing.target, fitted.data, errors_known=training_set.errors_known)
    x, y, strengths = data.x, data.y, data.weights
    predicted = training_set.algorithm.predict(training_set.params, fitted.fit.state, x)
    forces = strengths * (y - predicted)
    energies = forces * (y - predicted) / 2
    force, torques = float(forces.sum()), forces @ x
    if not np.isfinite([force, *torques, energies.sum()]).all():
        return None
    size = np.sqrt(strengths @ (np.abs(y) + np.abs(predicted)) ** 2)
    still = (np.abs(torques) <= RESTS * size * np.sqrt(strengths @ mapped(x, np.square))).all()
    if not training_set.algorithm.through_origin(training_set.params):
        still &= abs(force) <= RESTS * size * np.sqrt(strengths.sum())
    shown = evenly(len(x), SHOWN)
    return Springs(
        energy=float(energies.sum()),
        force=force,
        torques=torques.tolist(),
        at_rest=bool(still),
        rows=rows[shown].tolist(),
        strengths=strengths[shown].tolist(),
        fitted=predicted[shown].tolist(),
        observed=y[shown].tolist(),
        energies=energies[shown].tolist(),
    )

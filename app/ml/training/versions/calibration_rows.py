"""Rows that calibrate a stored classifier: rows that it was not trained on, in two parts."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import UNKNOWN, codes_of
from app.ml.contract.progress import Progress
from app.ml.evaluation.group_splits import among, read_groups
from app.ml.evaluation.report import Reuse
from app.ml.evaluation.splits import Split, holdout
from app.ml.evaluation.time_splits import TimeOrder, latest, read_times
from app.ml.kinds.job import Loaded
from app.ml.models import seen_rows
from app.ml.models.model import Model
from app.ml.models.seen_rows import SeenRows
from app.ml.preparation.row_hashes import row_hashes
from app.ml.preparation.target import Target, read_weights
from app.ml.training.versions.calibration_roles import Roles
from app.ml.training.versions.table_evaluation import BLOCK, only, read_truth, trainings
from app.ml.training.versions.unseen_rows import Unseen, reuse_of, unseen

FEWEST = 5
"""Rows of a class that fit its map."""
NAMED = 10
"""Classes named in one message."""


class PredictedRows(NamedTuple):
    """Rows of classes that the model knows, with its probabilities."""

    numbers: Labels
    """(n,) row numbers of the table."""
    codes: Labels
    """(n,) of the model's classes."""
    probabilities: Matrix
    """(n, k)."""
    weights: Vector | None = None
    """(n,) of mean 1; None: all count the same."""
    groups: Labels | None = None
    """(n,) codes of groups of rows that are alike; None: there are none."""

    def take(self, places: Labels) -> "PredictedRows":
        weights = None if self.weights is None else self.weights[places]
        groups = among(self.groups, places)
        return PredictedRows(self.numbers[places], self.codes[places], self.probabilities[places], weights, groups)


class Division(NamedTuple):
    """Division of the rows: at random, class by class; in whole groups; or the latest apart from those before."""

    test_fraction: float
    seed: int
    roles: Roles
    """Columns of the dataset that divide and weigh its rows."""


class CalibrationRows(NamedTuple):
    """Rows that the model was not trained on, in two parts."""

    fit: PredictedRows
    test: PredictedRows
    chosen: Unseen
    unknown: int
    """Rows of classes that the model does not know, in neither part."""
    roles: Roles = Roles()
    """Columns that divided and weighed them."""
    since: str | None = None
    """The earliest time of the rows that measure, where time divides them."""


def calibration_rows(
    loaded: Loaded, table: pa.Table, digest: str, division: Division, progress: Progress
) -> CalibrationRows:
    """Raises InvalidData where the model has learned from all rows, or a class has too few others.

    digest: of the dataset.
    """
    model = loaded.model
    chosen = _unseen(loaded, read_truth(loaded.version.header, model.target, table), table, digest)
    target = only(chosen.target, np.flatnonzero(_codes(model, chosen.target) != UNKNOWN))
    rows = _weighted(_predicted(model, table, target, progress), table, division.roles.weights)
    if (group := division.roles.group) is not None and rows.numbers.size:
        rows = rows._replace(groups=read_groups(table, group, rows.numbers))
    name = division.roles.time
    times = None if name is None else read_times(table, name, rows.numbers)
    split = _divided(model, rows, division, times)
    unknown = chosen.target.rows.size - target.rows.size
    since = None if times is None else times.first(split.test)
    return CalibrationRows(rows.take(split.train), rows.take(split.test), chosen, unknown, division.roles, since)


def _weighted(rows: PredictedRows, table: pa.Table, name: str | None) -> PredictedRows:
    if name is None or not rows.numbers.size:
        return rows
    weights = read_weights(table.column(name), name, rows.numbers)
    return rows._replace(weights=weights / weights.mean())


def reuse(loaded: Loaded, rows: CalibrationRows, digest: str) -> Reuse:
    """The rows that an evaluation of the model uses: those of the calibration are among them."""
    receipt, target = loaded.model.receipt, loaded.model.target
    return reuse_of(receipt, digest, target, rows.chosen, int(rows.chosen.found.seen.sum()))


def seen_after(loaded: Loaded, rows: CalibrationRows, table: pa.Table, digest: str) -> bytes:
    """Rows that fitted the maps are training rows of the new version, as are those of the version before."""
    if loaded.seen is None:
        return b""
    inputs, target = [column.name for column in loaded.model.inputs], loaded.model.target
    hashes = row_hashes(table.take(pa.array(rows.fit.numbers)), inputs, target)
    return seen_rows.encode([*loaded.seen, SeenRows.of(hashes, digest, inputs, target)])


def _unseen(loaded: Loaded, target: Target, table: pa.Table, digest: str) -> Unseen:
    trainings_of_model, truth = trainings(loaded.model.receipt, digest), loaded.model.target
    chosen = unseen(trainings_of_model, loaded.seen or (), target, table, truth=truth, digest=digest)
    if trainings_of_model and loaded.seen is None and not chosen.sealed:
        raise InvalidData("The model has learned from unknown rows of this dataset: calibrate it on another one.")
    if not chosen.target.rows.size:
        raise InvalidData("The model has learned from all rows of this dataset: calibrate it on one with other rows.")
    return chosen


def _predicted(model: Model, table: pa.Table, target: Target, progress: Progress) -> PredictedRows:
    rows = table if target.rows.size == table.num_rows else table.take(pa.array(target.rows))
    probabilities = np.zeros((target.rows.size, len(model.classes or ())))
    for start in range(0, target.rows.size, BLOCK):
        progress(start / target.rows.size)
        probabilities[start : start + BLOCK] = model.predict(rows.slice(start, BLOCK)).probabilities
    return PredictedRows(target.rows, _codes(model, target), probabilities)


def _divided(model: Model, rows: PredictedRows, division: Division, times: TimeOrder | None) -> Split:
    if times is not None:
        test = latest(times.codes, division.test_fraction)
        split = Split(np.setdiff1d(np.arange(rows.codes.size), test), test)
    elif rows.codes.size:
        rng = np.random.Generator(np.random.PCG64(division.seed))
        split = holdout(rows.codes.size, division.test_fraction, rng, rows.codes, rows.groups)
    else:
        split = Split(np.zeros(0, np.intp), np.zeros(0, np.intp))
    if lacking := [*_lacking(model, rows.codes, split)]:
        raise InvalidData(
            f"Of every class at least {FEWEST} rows must fit the map and 1 must measure it, all of them rows that the "
            f"model was not trained on. {' '.join(lacking[:NAMED])}"
        )
    return split


def _lacking(model: Model, codes: Labels, split: Split) -> Iterator[str]:
    classes = model.classes or ()
    fit, test = (np.bincount(codes[part], minlength=len(classes)).tolist() for part in split)
    for label, fitting, measuring in zip(classes, fit, test, strict=True):
        if fitting < FEWEST or not measuring:
            yield f"Class {label!r}: {fitting} to fit, {measuring} to measure."


def _codes(model: Model, target: Target) -> Labels:
    places = codes_of(target.classes or (), model.classes or ())
    codes: Labels = places[target.y.astype(np.intp)]
    return codes

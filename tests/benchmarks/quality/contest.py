"""One algorithm with its defaults and its peer on one table: train, predict, compare."""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from app.ml.contract.algorithm import Task
from app.ml.contract.columns import TableColumn
from app.ml.models.model import decode
from app.ml.tables.column_sheet import describe
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.benchmarks.paired import Array, Paired, class_losses

from .peers import CLASSES, NUMBERS, Peer
from .public import PUBLIC
from .tables import TABLES, Split, Table

Losses = dict[str, list[float]]
"""Of each measure one a split."""


class Line(NamedTuple):
    """One measure of one algorithm on one table."""

    algorithm: str
    table: str
    peer: str
    measure: str
    ours: float
    theirs: float
    paired: Paired
    unfinished: int
    """Fits that report that they did not converge."""

    @property
    def matters(self) -> bool:
        return abs(self.paired.difference) > 1e-4 * abs(self.theirs)

    @property
    def verdict(self) -> str:
        """By more than two standard errors and more than a ten thousandth of the loss."""
        t = self.paired.t if self.matters else 0.0
        return "worse" if t > 2 else "better" if t < -2 else "equal"


def peers_of(table: Table) -> dict[str, Peer]:
    return CLASSES if table.classes else NUMBERS


def contests(name: str, algorithms: frozenset[str] = frozenset()) -> list[Line]:
    """All lines of one table. algorithms: those compared; none means all."""
    table, lines = (TABLES | PUBLIC)[name], list[Line]()
    splits, seen = list(table.splits()), dict[str, Losses]()
    for algorithm, peer in peers_of(table).items():
        if algorithms and algorithm not in algorithms:
            continue
        ours, unfinished = _ours(algorithm, table, splits)
        if peer.name not in seen:
            seen[peer.name] = joined(losses_of(peer, table, split) for split in splits)
        theirs = seen[peer.name]
        for measure in ours:
            if measure == "RMSE" or measure in peer.measures:
                pair = np.array(ours[measure]), np.array(theirs[measure])
                paired = Paired.of(*pair, table.shared)
                means = (float(each.mean()) for each in pair)
                lines.append(Line(algorithm, name, peer.name, measure, *means, paired, unfinished))
    return lines


class Fitted(NamedTuple):
    """An algorithm with its defaults, trained on the rows of a split and evaluated by the others."""

    losses: dict[str, float]
    converged: bool
    seconds: float
    """CPU time of the training."""


def fitted(algorithm: str, table: Table, split: Split, **params: Any) -> Fitted:
    """params: those of the algorithm other than its defaults."""
    task = Task.CLASSIFICATION if table.classes else Task.REGRESSION
    named = {"name": algorithm} | params
    requested = {"target": table.target, "algorithm": named, "validation": {"test_fraction": 0}}
    spec, begun = TrainSpec.model_validate(requested | {"task": task}), time.process_time()
    trained = train(plan(spec, sheet(split.train), split.train.num_rows), split.train, data_digest="sha256:0")
    seconds = time.process_time() - begun
    predicted = decode(trained.blob).predict(split.test.drop_columns([table.target]))
    if predicted.probabilities is None:
        losses = _rmse(predicted.values, split.test[table.target].to_numpy(zero_copy_only=False))
    else:
        order = np.argsort(np.array(predicted.classes))
        losses = class_losses(predicted.probabilities[:, order], _codes(split, table))
    return Fitted(losses, trained.report.converged is not False, seconds)


def _ours(algorithm: str, table: Table, splits: list[Split]) -> tuple[Losses, int]:
    each = [fitted(algorithm, table, split) for split in splits]
    return joined(one.losses for one in each), sum(not one.converged for one in each)


def losses_of(peer: Peer, table: Table, split: Split) -> dict[str, float]:
    x, new_x = (framed_columns(part.drop_columns([table.target])) for part in split)
    y = split.train[table.target].to_numpy(zero_copy_only=False)
    estimator = peer.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not table.classes:
            truth = split.test[table.target].to_numpy()
            return _rmse(estimator.fit(x, y).predict(new_x), truth)
        estimator.fit(x, np.unique(y, return_inverse=True)[1])
        codes = _codes(split, table)
        if hasattr(estimator, "predict_proba"):
            return class_losses(estimator.predict_proba(new_x), codes)
        return {"error": float((estimator.predict(new_x) != codes).mean())}


def framed_columns(table: pa.Table) -> pd.DataFrame:
    """Times as seconds, as the service has them."""
    frame = table.to_pandas()
    for name in frame.select_dtypes("datetimetz"):
        frame[name] = (frame[name] - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return frame


def _codes(split: Split, table: Table) -> Array:
    """(n,) the places of the true classes of the test rows, in the order of their labels."""
    known, truth = (np.array(part[table.target].to_pylist()) for part in split)
    return np.searchsorted(np.unique(known), truth)


def _rmse(predicted: Array, truth: Array) -> dict[str, float]:
    return {"RMSE": float(np.sqrt(np.mean((predicted - truth) ** 2)))}


def joined(each: Any) -> Losses:
    each = list(each)
    return {measure: [losses[measure] for losses in each] for measure in each[0]}


def sheet(table: pa.Table) -> list[TableColumn]:
    """As the service describes the columns of an upload."""
    return [_described(name, table[name].combine_chunks()) for name in table.column_names]


def _described(name: str, cells: pa.Array) -> TableColumn:
    found = describe(name, cells.type, lambda: iter([cells]))
    low, high = (end if isinstance(end, float) else None for end in (found.minimum, found.maximum))
    known = {"identifier_like": found.identifier_like, "minimum": low, "maximum": high}
    return TableColumn(name, found.kind, found.missing, found.distinct, **known)

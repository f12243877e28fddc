"""From a table and a request to a fitted model, its report and its golden rows. Pure: no I/O."""

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from app.ml.contract import JSON, Data, Fit, Labels, Learned, Progress, silent
from app.ml.evaluation import Evaluation, evaluate
from app.ml.golden import check_golden, record_golden, spaced
from app.ml.kind import Trained
from app.ml.material import Material
from app.ml.model import Model, encode
from app.ml.planning import Plan, TrainSpec, algorithm_name, plan
from app.ml.preparation import Preparation
from app.ml.progress import Reporter, Stages, unheard
from app.ml.report import Fold
from app.ml.reporting import Judged, report
from app.ml.schema import TableColumn
from app.ml.splits import holdout, kfold

READ, FOLDED, FITTED, JUDGED = 0.05, 0.7, 0.9, 0.97
"""How far a training is when these are done."""


def train(
    spec: TrainSpec,
    table: pa.Table,
    *,
    columns: Sequence[TableColumn],
    data_digest: str,
    progress: Reporter = unheard,
) -> Trained:
    """Split, prepare, fit, evaluate, encode.

    table: the whole dataset; pass the only reference to it, and its memory is free during the fit.
    columns: the data sheet it came with. data_digest: goes into the receipt.

    The model is the one that was fitted on the training rows, and the report is about that very model.
    Raises InvalidRequest for what `plan` finds, InvalidData for rows that cannot be used, naming them.
    """
    stages = Stages(progress)
    stages(0.0, "reading the table")
    planned = plan(spec, columns, table.num_rows)
    material = Material.read(spec, planned, table, columns)
    rng = np.random.Generator(np.random.PCG64(spec.seed))
    split = holdout(material.rows, spec.validation.test_fraction, rng, material.target.codes)
    shown = material.target.rows[spaced(split.test if split.test.size else split.train)]
    sample = table.select(planned.features).take(pa.array(shown))
    del table

    folds = list(_folds(material, split.train, spec, rng, stages))
    fitted = _fit(material, split.train, spec.seed, stages.within(FOLDED if folds else READ, FITTED, "fitting"))
    stages(FITTED, "evaluating")
    test = _judge(material, fitted, split.test, rng)
    judged = Judged(
        fit=fitted.fit,
        test=test,
        train=evaluate(fitted.learned, fitted.data, fitted.data, material.classes, rng),
        folds=folds,
        preparation=fitted.preparation,
    )
    stages(JUDGED, "writing the model")
    model = Model(
        name=algorithm_name(spec),
        task=material.task,
        params=material.params,
        state=fitted.fit.state,
        preparation=fitted.preparation,
        target=spec.target,
        classes=material.target.classes,
        receipt=_receipt(spec, data_digest),
    )
    told = report(material, split, judged, spec.seed, planned.warnings)
    return Trained(encode(model), told, record_golden(model, sample))


class _Fitted(NamedTuple):
    preparation: Preparation
    data: Data
    fit: Fit[Any]
    learned: Learned


def _fit(material: Material, rows: Labels, seed: int, progress: Progress) -> _Fitted:
    preparation = material.prepare(rows)
    data = material.data(preparation, rows)
    return _Fitted(preparation, data, *material.fit(data, seed, progress))


def _judge(material: Material, fitted: _Fitted, rows: Labels, rng: np.random.Generator) -> Evaluation:
    if not rows.size:
        return Evaluation([])
    data = material.data(fitted.preparation, rows)
    return evaluate(fitted.learned, data, fitted.data, material.classes, rng)


def _folds(
    material: Material, rows: Labels, spec: TrainSpec, rng: np.random.Generator, stages: Stages
) -> Iterator[Fold]:
    """K-fold figures within the training rows, on request; preparation is learned anew in every fold."""
    if spec.validation.method != "kfold":
        return
    codes = None if material.target.codes is None else material.target.codes[rows]
    splits = kfold(rows.size, spec.validation.folds, rng, codes)
    for place, split in enumerate(splits):
        stages(READ + (FOLDED - READ) * place / len(splits), f"fitting fold {place + 1} of {len(splits)}")
        fitted = _fit(material, rows[split.train], spec.seed, silent)
        judged = _judge(material, fitted, rows[split.test], rng)
        yield Fold(fold=place + 1, rows=split.test.size, metrics=judged.figures)


def _receipt(spec: TrainSpec, data_digest: str) -> dict[str, JSON]:
    """The same receipt gives the same bytes."""
    return {
        "seed": spec.seed,
        "data_digest": data_digest,
        "spec": spec.model_dump(mode="json", include=set(TrainSpec.model_fields)),
        "libraries": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("valiant", "numpy", "scipy", "numba")},
        },
    }


__all__ = ["Plan", "TrainSpec", "Trained", "check_golden", "plan", "train"]

"""From a table and a request to a fitted model, its report and its golden rows. Pure: no I/O."""

import platform
from collections.abc import Mapping
from importlib.metadata import version

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import JSON, Each, in_turn
from app.ml.contract.progress import Reporter, Stages, unheard
from app.ml.evaluation.duplicates import Copies
from app.ml.evaluation.splits import Split, holdout
from app.ml.job import Trained
from app.ml.models import seen_rows
from app.ml.models.conformal import ENOUGH, EVERYWHERE, chosen
from app.ml.models.golden import record_golden, spaced
from app.ml.models.model import Model, encode
from app.ml.models.seen_rows import SeenRows
from app.ml.preparation.target_limits import target_limits
from app.ml.training import stability
from app.ml.training.cross_validation import Fits, validate
from app.ml.training.fit import calibrate, calibrate_by_folds, fit_rows, judge, judge_own
from app.ml.training.interval_report import held_out_report
from app.ml.training.interval_report import warnings as interval_warnings
from app.ml.training.out_of_core import Stream
from app.ml.training.plan import Plan
from app.ml.training.reporting import EvaluatedFit, report
from app.ml.training.spring_analogy import springs
from app.ml.training.train_spec import TrainSpec
from app.ml.training.training_set import TrainingSet

READ, FOLDED, FITTED, JUDGED = 0.05, 0.7, 0.9, 0.97
"""How far a training is when these are done."""


def train(
    planned: Plan,
    table: pa.Table,
    *,
    data_digest: str,
    reading: Mapping[str, JSON] | None = None,
    progress: Reporter = unheard,
    each: Each = in_turn,
) -> Trained:
    """Split, prepare, fit, evaluate, encode.

    planned: for this table. table: the whole dataset; pass the only reference to it, and its memory is free during
    the fit. data_digest, reading (see `Sheet`): for the receipt. A table that needs more than the plan's memory is
    read, not held, if the algorithm can learn so (`app.ml.training.out_of_core`).

    The model is the one that was fitted on the training rows, and the report is about that very model.
    Raises InvalidData for rows that cannot be used, naming them.
    """
    stages, spec = Stages(progress), planned.spec
    stages(0.0, "reading the table")
    stream, rng = None, np.random.Generator(np.random.PCG64(spec.seed))
    if planned.lot:
        stream = Stream.look(planned, table, stages.within(0.0, READ, "reading the table"))
        table = stream.sample
    material = TrainingSet.read(planned, table, each)
    if stream:
        material, split = material._replace(numbers=stream.numbers), stream.split
    else:
        split = holdout(material.rows, spec.validation.test_fraction, rng, material.target.codes, material.groups)
    shown = material.target.rows[spaced(split.test if split.test.size else split.train)]
    sample = table.select(planned.features).take(pa.array(shown))
    hashes = stream.hashes if stream and stream.hashes.size else None
    copies = Copies.look(
        table,
        material.target.rows,
        planned.features,
        spec.target,
        train=split.train,
        learned=hashes,
    )
    learned = split.train if hashes is None else np.arange(material.rows, copies.hashes.size)
    del table

    limits = EVERYWHERE
    if material.task.of_numbers:
        limits = target_limits(spec.preprocessing, material.target.y[split.train])

    def step(fraction: float, message: str) -> None:
        stages(READ + (FOLDED - READ) * fraction, message)

    kept_as = spec.algorithm.name if split.test.size < ENOUGH else None
    validated = validate(Fits(material, split.train, spec.seed, rng, step, copies, kept_as), spec.validation)
    received = stages.within(FOLDED if validated else READ, FITTED, "fitting")
    fitted = stream.fit(material, received) if stream else fit_rows(material, split.train, spec.seed, received)
    stages(FITTED, "evaluating")
    test = judge(material, fitted, split.test, rng)
    evaluated = EvaluatedFit(
        fit=fitted.fit,
        test=test,
        train=judge_own(fitted, rng),
        validated=validated,
        equal=copies.equal(Split(learned, split.test)),
        preparation=fitted.preparation,
        conditioning=stability.look(material, fitted, spec.seed),
        springs=None if stream else springs(material, fitted, material.numbers[split.train]),
        rows=stream.rows if stream else split.train.size,
    )
    stages(JUDGED, "writing the model")
    model = Model(
        name=spec.algorithm.name,
        task=material.task,
        params=material.params,
        state=fitted.fit.state,
        preparation=fitted.preparation,
        target=spec.target,
        classes=material.target.classes,
        receipt=_receipt(spec, data_digest, reading) | ({"lot": planned.lot} if stream else {}),
        linearising=spec.preprocessing.target,
        calibration=chosen(
            calibrate(material, fitted, split.test),
            (validated and validated.calibration)
            or calibrate_by_folds(material, split.train, validated and validated.predicted),
        ),
        limits=limits,
    )
    result = report(material, split, evaluated, planned, data_digest)
    seen = []
    if not stream or hashes is not None:
        rows = copies.hashes[learned] if hashes is None else hashes
        seen = [SeenRows.of(rows, data_digest, planned.features, spec.target)]
    intervals = held_out_report(model, material, fitted, split.test)
    result = result.model_copy(
        update={"intervals": intervals, "warnings": [*result.warnings, *interval_warnings(intervals)]}
    )
    return Trained(encode(model), result, record_golden(model, sample), seen_rows.encode(seen))


def _receipt(spec: TrainSpec, data_digest: str, reading: Mapping[str, JSON] | None) -> dict[str, JSON]:
    """The same receipt gives the same bytes."""
    unusual = {"reading": dict(reading)} if reading else {}
    return unusual | {
        "seed": spec.seed,
        "data_digest": data_digest,
        "spec": spec.model_dump(mode="json", include=set(TrainSpec.model_fields)),
        "libraries": libraries(),
    }


def libraries() -> dict[str, JSON]:
    """The version of all that has a part in the bytes of a model."""
    names = "valiant", "numpy", "scipy", "numba"
    return {"python": platform.python_version(), **{name: version(name) for name in names}}

"""Rows of a dataset that may evaluate a model: those that its training has not seen."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import JSON
from app.ml.evaluation.holdout_reuse import held_out, held_out_by_all, whole, without
from app.ml.evaluation.report import Reuse
from app.ml.models.seen_rows import Recognised, SeenRows, recognise
from app.ml.preparation.target import Target
from app.ml.training.versions.table_evaluation import only, sealed_rows, trainings

NOT_KNOWN = (
    "Of versions of earlier releases, and of trainings on more than 10 million rows or more than memory had room for, "
    "the training rows are not known: rows of another dataset that equal one were evaluated too."
)


class Unseen(NamedTuple):
    target: Target
    """The rows to evaluate on."""
    sealed: bool
    """They are among those that the training held out of this very dataset."""
    found: Recognised
    """Rows that equal a training row, among all with a truth, or those held out."""


def unseen(
    receipts: Sequence[Mapping[str, JSON]],
    seen: Sequence[SeenRows],
    target: Target,
    table: pa.Table,
    *,
    truth: str | None,
    digest: str,
    everything: bool = False,
) -> Unseen:
    """own: receipts of the trainings on this dataset. seen: the rows that trainings on any dataset have seen.

    everything: choose all rows; only find those that are seen.
    """
    sealed = sealed_rows(receipts, target, table) if receipts and not everything else None
    if sealed is not None:
        target, seen = only(target, sealed), [part for part in seen if part.data_digest != digest]
    rows = table if target.rows.size == table.num_rows else table.take(pa.array(target.rows))
    recognised = recognise(seen, rows, truth, digest)
    if not everything and recognised.seen.any():
        target = only(target, np.flatnonzero(~recognised.seen))
    return Unseen(target, sealed is not None, recognised)


def reuse_of(receipt: Mapping[str, JSON], data_digest: str, target: str | None, chosen: Unseen, left_out: int) -> Reuse:
    """receipt: of the model that these rows evaluate. left_out: rows that it has seen."""
    if not chosen.sealed:
        return without(data_digest, target, left_out) if left_out else whole(data_digest, target)
    if "members" in receipt:
        return held_out_by_all(data_digest, target)
    (trained,) = trainings(receipt, data_digest)
    return held_out(data_digest, target, trained["spec"]["validation"], trained["seed"])

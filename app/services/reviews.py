"""The review queue: rows that a classifier rejects are filed, labelled by people and exported to train on."""

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa

from app.base.errors import InvalidRequest, ReviewsChanged, ReviewsFull
from app.base.faults import Fault
from app.base.settings import Settings
from app.base.suggestions import no_such
from app.formats.prediction import NO_EXTRAS, Extras, Version, WrittenPrediction
from app.ml.contract.algorithm import Labels
from app.ml.contract.labels import UNKNOWN, Class, codes_of
from app.ml.models.golden import as_sent
from app.ml.models.model import Model, Predicted
from app.ml.tables.rows import Incoming
from app.schemas.datasets import Dataset, FileFormat
from app.schemas.reviews import Review, ReviewExport, ReviewPage, ReviewState
from app.services.datasets.datasets import Datasets
from app.services.predictions.rejected_rows import rejected
from app.store.reviews.reviews import RejectedRow, Rejecting
from app.store.unit_of_work import Work, WorkFactory

Write = Callable[..., WrittenPrediction]
EXPORTED = 100_000
"""Rows of one export, the oldest first; the next has the others."""


class Reviews:
    def __init__(self, work: WorkFactory, datasets: Datasets, settings: Settings) -> None:
        self._work, self._datasets = work, datasets
        self._most = settings.max_waiting_reviews

    def filing(self, write: Write) -> Write:
        """The same response, written when the rows that it rejects are stored. Raises ReviewsFull."""

        def file_and_write(
            version: Version, model: Model, incoming: Incoming, predicted: Predicted | None, extras: Extras = NO_EXTRAS
        ) -> WrittenPrediction:
            rows = np.zeros(0, np.intp) if predicted is None else rejected(predicted, extras)
            if predicted is not None and rows.size:
                self._file(version, model, incoming, predicted, rows)
            return write(version, model, incoming, predicted, extras)._replace(filed=rows.size)

        return file_and_write

    def _file(self, version: Version, model: Model, incoming: Incoming, predicted: Predicted, rows: Labels) -> None:
        if predicted.probabilities is None or model.target is None:
            raise ValueError("Only classes are reviewed.")
        by = Rejecting(
            version.model,
            version.version,
            model.target,
            list(model.classes or ()),
            [column.name for column in model.inputs],
        )
        data = [*_values(incoming, by.columns, rows)]
        rows_filed = [
            RejectedRow(hashlib.sha256(orjson.dumps(values)).digest(), values, probabilities)
            for values, probabilities in zip(data, predicted.probabilities[rows].tolist(), strict=True)
        ]
        unique = list({row.digest: row for row in rows_filed}.values())

        def file(w: Work) -> None:
            if w.reviews.waiting() + len(unique) > self._most:
                raise ReviewsFull(f"{self._most} rows wait for a label, or would.")
            w.reviews.add(by, unique)

        self._work.retry(file, seconds=5)

    def page(
        self, limit: int, cursor: str | None = None, *, model: str | None = None, state: ReviewState | None = None
    ) -> ReviewPage:
        """Newest first."""
        with self._work() as w:
            return w.reviews.page(limit, cursor, model=model, state=state)

    def label(self, review_id: UUID, label: Class | None) -> Review:
        """Raises ReviewNotFound, InvalidRequest for what is no class of the version."""
        with self._work() as w:
            classes = w.reviews.get(review_id).classes
            if label is not None:
                (code,) = codes_of([label], classes)
                if code == UNKNOWN:
                    detail = f"{_no_class(label, classes)} It has {', '.join(map(str, classes))}."
                    raise InvalidRequest(faults=[Fault("/label", detail, "unknown_class")])
                label = classes[code]
            return w.reviews.label(review_id, label)

    def delete(self, review_id: UUID) -> None:
        """Raises ReviewNotFound."""
        with self._work() as w:
            w.reviews.delete(review_id)

    def export(self, request: ReviewExport) -> Dataset:
        """A dataset of the labelled rows, and the note in each of them, both or neither.

        Raises InvalidRequest if there is none, ReviewsChanged if one of them is labelled anew meanwhile.
        """
        with self._work() as w:
            labelled = w.reviews.labelled(request.model, EXPORTED, again=request.again)
        if not labelled:
            detail = "No row of the model has a label and is in no dataset yet."
            raise InvalidRequest(faults=[Fault("/model", detail, "nothing_labelled")])
        newest = max(review.labelled_at for review in labelled if review.labelled_at is not None)

        def note(w: Work, dataset: Dataset) -> None:
            if not w.reviews.export([review.id for review in labelled], dataset.id, newest=newest, again=request.again):
                raise ReviewsChanged

        content = _file_of(labelled)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        with self._datasets.spool() as spool:
            spool.write(content)
            spool.seek(0)
            return self._datasets.ingest(
                spool,
                name=request.name,
                file_format=FileFormat.ARROW,
                size_bytes=len(content),
                digest=digest,
                together=note,
            )


def _values(incoming: Incoming, names: Sequence[str], rows: Labels) -> Iterator[list[Any]]:
    """Values of each of these rows as JSON, in the order of the names."""
    table = incoming.table
    if isinstance(table, np.ndarray):
        columns = [[as_sent(value) for value in column] for column in table[rows].T.tolist()]
    else:
        taken = table.select(names).take(pa.array(rows))
        columns = [[as_sent(value) for value in column.to_pylist()] for column in taken.columns]
    yield from map(list, zip(*columns, strict=True))


def _file_of(reviews: Sequence[Review]) -> bytes:
    """An Arrow file of the inputs of all versions, each null where a version has it not, and of the target."""
    target = reviews[-1].target
    names = list(dict.fromkeys(name for review in reviews for name in review.row))
    columns = {name: pa.array([review.row.get(name) for review in reviews]) for name in names}
    columns[target] = pa.array([review.label for review in reviews])
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    return sink.getvalue()


def _no_class(label: Class, classes: Sequence[Class]) -> str:
    return no_such("The version has no class", str(label), list(map(str, classes)))

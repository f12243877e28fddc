"""Uploads in parts: what has arrived is kept in the database, so that a file that broke off goes on where it ended."""

import hashlib
from collections.abc import Iterator
from uuid import UUID

from app.base.errors import BodyTooLarge, InvalidData
from app.base.faults import Fault
from app.base.settings import Settings
from app.ingest.upload_options import ReadOptions
from app.schemas.datasets import Dataset, FileFormat
from app.schemas.uploads import OFFSET_HEADER, BeginUpload, Upload
from app.services.datasets.datasets import Datasets
from app.store.base.new_ids import uuid7
from app.store.datasets.uploads import UploadIncomplete, wrong_offset
from app.store.unit_of_work import Work, WorkFactory


class _MadeBefore(Exception):
    """Another request has made the dataset of the upload."""


class Uploads:
    def __init__(self, work: WorkFactory, datasets: Datasets, settings: Settings) -> None:
        self._work, self._datasets, self._settings = work, datasets, settings

    def begin(self, upload: BeginUpload) -> Upload:
        """The upload, for which the project has room from now on. Raises BodyTooLarge, QuotaExceeded."""
        if upload.size_bytes > self._settings.max_upload_bytes:
            raise BodyTooLarge(f"At most {self._settings.max_upload_bytes} bytes are accepted.")
        upload_id = uuid7()

        def add(w: Work) -> Upload:
            stored = w.uploads.find(upload_id)  # the commit of a lost connection may have happened
            if stored is not None:
                return stored
            begun = w.uploads.add(upload_id, size_bytes=upload.size_bytes, digest=upload.digest)
            w.quotas.demand(storage_bytes=0)
            w.audit.note_created(f"/v1/uploads/{upload_id}")
            return begun

        return self._work.retry(add)

    def get(self, upload_id: UUID) -> Upload:
        """Raises UploadNotFound."""
        with self._work() as w:
            return w.uploads.get(upload_id)

    def expect(self, upload_id: UUID, offset: int) -> Upload:
        """The upload whose next part begins at this offset. Raises UploadNotFound, WrongOffset."""
        upload = self.get(upload_id)
        if upload.offset != offset:
            raise wrong_offset(upload.offset, offset)
        return upload

    def append(self, upload_id: UUID, offset: int, payload: bytes) -> Upload:
        """Store the bytes behind the first `offset`. Raises UploadNotFound, WrongOffset."""
        return self._work.retry(lambda w: w.uploads.append(upload_id, offset, payload))

    def delete(self, upload_id: UUID) -> None:
        """Raises UploadNotFound. A dataset that was made of it stays."""
        with self._work() as w:
            w.uploads.delete(upload_id)

    def make_dataset(
        self, upload_id: UUID, *, name: str | None, file_format: FileFormat | None, options: ReadOptions
    ) -> Dataset:
        """The dataset of the whole file, once: later calls return the same one, whatever their options.

        Raises UploadNotFound, UploadIncomplete, and what `Datasets.ingest` does; then the upload stays as it is.
        """
        upload = self.get(upload_id)
        if upload.dataset is not None:
            return self._datasets.get(upload.dataset)
        if upload.offset < upload.size_bytes:
            detail = f"{upload.offset} of {upload.size_bytes} bytes have arrived."
            raise UploadIncomplete(detail, headers={OFFSET_HEADER: str(upload.offset)})
        hashed = hashlib.sha256()
        with self._datasets.spool() as spool:
            for payload in self._payloads(upload_id):
                hashed.update(payload)
                spool.write(payload)
            spool.flush()
            digest = f"sha256:{hashed.hexdigest()}"
            if upload.digest not in {None, digest}:
                raise _other_digest()
            try:
                return self._datasets.ingest(
                    spool,
                    name=name,
                    file_format=file_format,
                    options=options,
                    size_bytes=upload.size_bytes,
                    digest=digest,
                    together=lambda w, dataset: _finish(w, upload_id, dataset),
                )
            except _MadeBefore:
                return self.make_dataset(upload_id, name=name, file_format=file_format, options=options)

    def _payloads(self, upload_id: UUID) -> Iterator[bytes]:
        """The bytes, a few MiB at a time; one transaction for each."""
        return self._work.chunks(lambda w, seq: w.uploads.chunk(upload_id, seq))


def _finish(w: Work, upload_id: UUID, dataset: Dataset) -> None:
    if w.uploads.finish(upload_id, dataset.id) != dataset.id:
        raise _MadeBefore


def _other_digest() -> InvalidData:
    detail = "The bytes that have arrived do not have the digest that was announced: begin another upload."
    return InvalidData(detail, faults=[Fault("", detail, "digest_mismatch")])

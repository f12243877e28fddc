"""Files of models from other libraries: kept as they came, until a job reads them."""

import os
from collections.abc import Iterator
from typing import BinaryIO
from uuid import UUID

from app.base.settings import Settings
from app.schemas.files import StoredFile
from app.store.base.new_ids import uuid7
from app.store.unit_of_work import Work, WorkFactory


class Files:
    def __init__(self, work: WorkFactory, settings: Settings) -> None:
        self._work, self._settings = work, settings

    def keep(self, spool: BinaryIO, *, size_bytes: int, digest: str) -> StoredFile:
        """The bytes of an uploaded file; one chunk of them in memory at a time. Raises QuotaExceeded."""
        file_id, step = uuid7(), self._settings.chunk_bytes

        def keep(w: Work) -> StoredFile:
            stored = w.files.find(file_id)  # the commit of a lost connection may have happened
            if stored is not None:
                return stored
            file = w.files.add(file_id, size_bytes=size_bytes, digest=digest)
            for seq, start in enumerate(range(0, size_bytes, step)):
                w.files.add_chunk(file_id, seq, os.pread(spool.fileno(), step, start))
            w.quotas.demand(storage_bytes=0)
            w.audit.note_created(f"/v1/files/{file_id}")
            return file

        return self._work.retry(keep)

    def get(self, file_id: UUID) -> StoredFile:
        """Raises FileNotFound."""
        with self._work() as w:
            return w.files.get(file_id)

    def payloads(self, file_id: UUID) -> Iterator[bytes]:
        """The bytes, a few MiB at a time; one transaction for each."""
        return self._work.chunks(lambda w, seq: w.files.chunk(file_id, seq))

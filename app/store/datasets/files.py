"""Uploaded files: a row for each, and its bytes in chunk rows. They go after a day, unless a job still needs them."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import cast, delete, func, insert, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from app.base.errors import FileNotFound
from app.schemas.files import StoredFile
from app.schemas.jobs import JobState
from app.store.base.database_clock import NOW
from app.store.datasets.dataset_tables import FileChunkRow, FileRow
from app.store.jobs.job_tables import JobRow

KEPT = timedelta(hours=24)


class FileRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, file_id: UUID, *, size_bytes: int, digest: str) -> StoredFile:
        """Its chunks follow with `add_chunk`, in the same transaction."""
        row = FileRow(id=file_id, size_bytes=size_bytes, digest=digest)
        self.session.add(row)
        self.session.flush()
        self.session.refresh(row, ["created_at"])
        return _file(row)

    def add_chunk(self, file_id: UUID, seq: int, payload: bytes) -> None:
        self.session.execute(insert(FileChunkRow), {"file_id": file_id, "seq": seq, "payload": payload})

    def get(self, file_id: UUID) -> StoredFile:
        """Raises FileNotFound."""
        file = self.find(file_id)
        if file is None:
            raise FileNotFound
        return file

    def find(self, file_id: UUID) -> StoredFile | None:
        row = self.session.get(FileRow, file_id)
        return None if row is None else _file(row)

    def hold(self, file_id: UUID) -> None:
        """Keep it from being deleted until the end of the transaction; by then the job shows."""
        self.session.execute(select(FileRow.id).where(FileRow.id == file_id).with_for_update(key_share=True, read=True))

    def chunk(self, file_id: UUID, seq: int) -> bytes | None:
        """The `seq`-th payload; None behind the last."""
        mine = FileChunkRow.file_id == file_id, FileChunkRow.seq == seq
        return self.session.scalar(select(FileChunkRow.payload).where(*mine))

    def sweep(self) -> None:
        """Delete those that are too old, unless a job that has not ended needs them."""
        old = select(FileRow.id).where(FileRow.created_at < NOW - KEPT).with_for_update(skip_locked=True)
        for file_id in self.session.scalars(old).all():
            if not self._needed(file_id):
                self.session.execute(delete(FileRow).where(FileRow.id == file_id))

    def _needed(self, file_id: UUID) -> bool:
        needs = JobRow.inputs.contains(cast({"files": [str(file_id)]}, JSONB))
        unfinished = JobRow.state.in_([state for state in JobState if not state.terminal])
        return self.session.scalars(select(func.count()).where(needs, unfinished)).one() > 0


def _file(row: FileRow) -> StoredFile:
    return StoredFile(
        id=row.id,
        size_bytes=row.size_bytes,
        digest=row.digest,
        created_at=row.created_at,
        expires_at=row.created_at + KEPT,
    )

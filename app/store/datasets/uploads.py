"""Uploads in parts: a row for each, and what has arrived in chunk rows, so that any process can take the next part."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from app.base.errors import ValiantError
from app.schemas.uploads import OFFSET_HEADER, Upload
from app.store.base.chunk_rows import delete_chunks
from app.store.base.database_clock import NOW
from app.store.datasets.upload_tables import UploadChunkRow, UploadRow

KEPT = timedelta(hours=24)


class UploadNotFound(ValiantError):
    code, status, title = "upload_not_found", 404, "No such upload"
    remedy = "Begin another one: POST /v1/uploads. An upload is kept for a day after its last part."


class WrongOffset(ValiantError):
    code, status, title = "wrong_offset", 409, "The part does not begin where the last one ended"
    remedy = "Send the file from the offset that the header Upload-Offset of this response gives."


class UploadIncomplete(ValiantError):
    code, status, title = "upload_incomplete", 409, "A part of the file has not arrived"
    remedy = "Send the rest of the file, from the offset that the header Upload-Offset of this response gives."


class UploadRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, upload_id: UUID, *, size_bytes: int, digest: str | None) -> Upload:
        row = UploadRow(id=upload_id, size_bytes=size_bytes, digest=digest)
        self.session.add(row)
        self.session.flush()
        self.session.refresh(row)
        return _upload(row)

    def find(self, upload_id: UUID) -> Upload | None:
        row = self.session.get(UploadRow, upload_id)
        return None if row is None else _upload(row)

    def get(self, upload_id: UUID) -> Upload:
        """Raises UploadNotFound."""
        upload = self.find(upload_id)
        if upload is None:
            raise UploadNotFound
        return upload

    def append(self, upload_id: UUID, offset: int, payload: bytes) -> Upload:
        """Store the bytes that follow the first `offset`. Raises UploadNotFound, WrongOffset.

        Bytes that are there already, as after a lost commit, are not stored again: they are the end of what is there.
        """
        row = self._locked(upload_id)
        if row.offset_bytes == offset + len(payload) and self._ends_with(row, payload):
            return _upload(row)
        if row.offset_bytes != offset:
            raise wrong_offset(row.offset_bytes, offset)
        values = {"upload_id": upload_id, "seq": row.chunks, "payload": payload}
        self.session.execute(insert(UploadChunkRow), values)
        row.offset_bytes, row.chunks, row.updated_at = offset + len(payload), row.chunks + 1, func.clock_timestamp()
        self.session.flush()
        self.session.refresh(row)
        return _upload(row)

    def _ends_with(self, row: UploadRow, payload: bytes) -> bool:
        return row.chunks > 0 and self.chunk(row.id, row.chunks - 1) == payload

    def finish(self, upload_id: UUID, dataset_id: UUID) -> UUID:
        """Id of the dataset that is made of it: this one, unless there is one already. Raises UploadNotFound."""
        row = self._locked(upload_id)
        row.dataset_id = row.dataset_id or dataset_id
        self.session.flush()
        return row.dataset_id

    def chunk(self, upload_id: UUID, seq: int) -> bytes | None:
        """The `seq`-th payload; None behind the last."""
        mine = UploadChunkRow.upload_id == upload_id, UploadChunkRow.seq == seq
        return self.session.scalar(select(UploadChunkRow.payload).where(*mine))

    def delete(self, upload_id: UUID) -> None:
        """Raises UploadNotFound."""
        self._locked(upload_id)
        self._remove(upload_id)

    def sweep(self) -> None:
        """Delete what was given up, and the bytes of what has become a dataset."""
        old = UploadRow.updated_at < NOW - KEPT
        for upload_id in self.session.scalars(select(UploadRow.id).where(old).with_for_update(skip_locked=True)).all():
            self._remove(upload_id)
        done = select(UploadRow.id).where(UploadRow.dataset_id.is_not(None), UploadRow.chunks > 0)
        for upload_id in self.session.scalars(done.with_for_update(skip_locked=True)).all():
            self._delete_chunks(upload_id)
            self._locked(upload_id).chunks = 0

    def _remove(self, upload_id: UUID) -> None:
        self._delete_chunks(upload_id)
        self.session.execute(delete(UploadRow).where(UploadRow.id == upload_id))

    def _delete_chunks(self, upload_id: UUID) -> None:
        delete_chunks(self.session, UploadChunkRow.seq, UploadChunkRow.upload_id == upload_id)

    def _locked(self, upload_id: UUID) -> UploadRow:
        """The row until the end of the transaction: one at a time adds to it. Raises UploadNotFound."""
        row = self.session.get(UploadRow, upload_id, with_for_update=True, populate_existing=True)
        if row is None:
            raise UploadNotFound
        return row


def wrong_offset(arrived: int, offset: int) -> WrongOffset:
    detail = f"{arrived} bytes of the file have arrived; the part begins behind byte {offset}."
    return WrongOffset(detail, headers={OFFSET_HEADER: str(arrived)})


def _upload(row: UploadRow) -> Upload:
    return Upload(
        id=row.id,
        size_bytes=row.size_bytes,
        offset=row.offset_bytes,
        digest=row.digest,
        dataset=row.dataset_id,
        created_at=row.created_at,
        expires_at=row.updated_at + KEPT,
    )

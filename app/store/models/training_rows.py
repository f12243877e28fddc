"""The hashes of the rows that a version has learned from, stored beside its bytes, which every prediction loads."""

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.store.models.model_tables import TrainingRowChunkRow as Chunk


class TrainingRowRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, model: str, version: int, hashes: bytes, chunk_bytes: int = 4 << 20) -> None:
        """hashes: as `app.ml.models.seen_rows` writes them; empty where nothing is known."""
        for seq, start in enumerate(range(0, len(hashes), chunk_bytes)):
            chunk = hashes[start : start + chunk_bytes]
            self.session.execute(insert(Chunk).values(model=model, version=version, seq=seq, payload=chunk))

    def chunk(self, model: str, version: int, seq: int) -> bytes | None:
        """The `seq`-th chunk; None behind the last one, and for versions of earlier releases."""
        conditions = Chunk.model == model, Chunk.version == version, Chunk.seq == seq
        return self.session.scalar(select(Chunk.payload).where(*conditions))

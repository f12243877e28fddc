"""The distributions of a version's training rows, stored beside its bytes, which every prediction loads."""

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.store.monitoring.monitoring_tables import VersionReferenceRow as Row


class VersionReferenceRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, model: str, version: int, payload: bytes) -> None:
        """payload: as `app.ml.monitoring.reference` writes it; empty where there is none, and nothing is stored."""
        if payload:
            self.session.execute(insert(Row).values(model=model, version=version, payload=payload))

    def find(self, model: str, version: int) -> bytes:
        """Empty where none is stored, as of versions of earlier releases."""
        payload = self.session.scalar(select(Row.payload).where(Row.model == model, Row.version == version))
        return payload or b""

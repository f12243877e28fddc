"""Counts of hold-out reuse: how often the same rows have evaluated models."""

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.ml.evaluation.report import Reuse
from app.store.models.model_tables import UseRow


class UseRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def count(self, evaluated: Reuse) -> int:
        """Once more; how often by now."""
        first = insert(UseRow).values(data_digest=evaluated.data_digest, rows=evaluated.rows, times=1)
        again = first.on_conflict_do_update(
            index_elements=[UseRow.project_id, UseRow.data_digest, UseRow.rows], set_={"times": UseRow.times + 1}
        )
        return self.session.execute(again.returning(UseRow.times)).scalar_one()

"""How often the same rows have judged."""

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.ml.evaluation.report import Reuse
from app.store.tables import UseRow


class UseRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def count(self, judges: Reuse) -> int:
        """Once more; how often by now."""
        first = insert(UseRow).values(data_digest=judges.data_digest, rows=judges.rows, times=1)
        again = first.on_conflict_do_update(
            index_elements=[UseRow.data_digest, UseRow.rows], set_={"times": UseRow.times + 1}
        )
        return self.session.execute(again.returning(UseRow.times)).scalar_one()

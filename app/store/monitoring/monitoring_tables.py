"""Tables of monitoring."""

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import Base, Owned, of_version


class VersionReferenceRow(Owned, Base):
    """Distributions of the rows that a version was trained on, as JSON."""

    __tablename__ = "version_references"
    __table_args__ = (of_version(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)

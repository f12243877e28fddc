"""Reading options of a dataset's file."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("datasets", sa.Column("reading", JSONB(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("datasets", "reading")

"""Seconds of each stage of a job's last attempt, and the cores that it used."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("stages", JSONB(), nullable=True))
    op.add_column("jobs", sa.Column("cores", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "cores")
    op.drop_column("jobs", "stages")

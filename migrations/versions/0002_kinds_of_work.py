"""Kinds of work: what a job needs, and what it found besides a model."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

JSON = postgresql.JSONB()


def upgrade() -> None:
    op.add_column("jobs", sa.Column("inputs", JSON, server_default=sa.text("'{}'"), nullable=False))
    op.add_column("jobs", sa.Column("result", JSON, nullable=True))
    op.create_check_constraint(op.f("ck_jobs_result"), "jobs", "result is null or state = 'succeeded'")


def downgrade() -> None:
    op.drop_constraint(op.f("ck_jobs_result"), "jobs", type_="check")
    op.drop_column("jobs", "result")
    op.drop_column("jobs", "inputs")

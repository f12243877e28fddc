"""Rows of a table that a running job has made so far; with its success they become a dataset."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TABLE = "job_chunks"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("first_row", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_chunks_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_job_chunks")),
    )
    op.execute(f"alter table {TABLE} alter column payload set storage external")  # compressed already


def downgrade() -> None:
    op.drop_table(TABLE)

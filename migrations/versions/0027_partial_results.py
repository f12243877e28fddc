"""Parts of a running job that outlive its attempt; jobs of every final state may have a version and a result."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

OWN = "coalesce(nullif(current_setting('valiant.project', true), '')::uuid, '00000000-0000-0000-0000-000000000000')"
FILLED = ("version", "result")
"""Columns that only an end fills."""


def upgrade() -> None:
    op.create_table(
        "job_units",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("outcome", JSONB(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=sa.text(OWN), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_units_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_job_units")),
    )
    op.create_table(
        "job_checkpoints",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("part", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=sa.text(OWN), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_job_checkpoints_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "part", "seq", name=op.f("pk_job_checkpoints")),
    )
    for table in ("job_units", "job_checkpoints"):
        op.execute(f"alter table {table} alter column payload set storage external")
    for column in FILLED:
        op.drop_constraint(op.f(f"ck_jobs_{column}"), "jobs")
        op.create_check_constraint(op.f(f"ck_jobs_{column}"), "jobs", f"{column} is null or finished_at is not null")


def downgrade() -> None:
    op.execute("update jobs set version = null, result = null where state <> 'succeeded'")
    for column in FILLED:
        op.drop_constraint(op.f(f"ck_jobs_{column}"), "jobs")
        op.create_check_constraint(op.f(f"ck_jobs_{column}"), "jobs", f"{column} is null or state = 'succeeded'")
    op.drop_table("job_checkpoints")
    op.drop_table("job_units")

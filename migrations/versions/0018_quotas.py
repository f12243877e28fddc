"""Quotas of projects, and indexes by which a project's jobs and datasets are listed and counted.

The project that was there before has no quotas.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_jobs_project_id_id": ("jobs", ["project_id", "id"]),
    "ix_jobs_project_id_state_id": ("jobs", ["project_id", "state", "id"]),
    "ix_job_transitions_project_id_at": ("job_transitions", ["project_id", "at"]),
    "ix_datasets_project_id_id": ("datasets", ["project_id", "id"]),
}


def upgrade() -> None:
    json = postgresql.JSONB(none_as_null=True, astext_type=sa.Text())
    op.add_column("projects", sa.Column("quotas", json, server_default=sa.text("'{}'"), nullable=False))
    for name, (table, columns) in INDEXES.items():
        op.create_index(name, table, columns)


def downgrade() -> None:
    for name, (table, _) in INDEXES.items():
        op.drop_index(name, table)
    op.drop_column("projects", "quotas")

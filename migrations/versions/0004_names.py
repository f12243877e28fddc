"""Names of jobs, lookups by name, trace contexts, and indexes by which every list reads no more rows than it shows."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("name", sa.String(), nullable=True))
    op.add_column("jobs", sa.Column("traceparent", sa.String(), nullable=True))
    op.create_index("ix_jobs_name", "jobs", ["name", "id"], postgresql_where=sa.text("name is not null"))
    op.create_index("ix_jobs_state", "jobs", ["state", "id"], postgresql_include=["kind"])
    op.drop_index("ix_jobs_unfinished", "jobs")
    op.create_index("ix_datasets_name", "datasets", ["name", "id"])
    op.create_index("ix_alias_moves_alias", "alias_moves", ["model", "alias", "id"])
    op.drop_index("ix_alias_moves_model", "alias_moves")


def downgrade() -> None:
    op.create_index("ix_alias_moves_model", "alias_moves", ["model"])
    op.drop_index("ix_alias_moves_alias", "alias_moves")
    op.drop_index("ix_datasets_name", "datasets")
    op.create_index("ix_jobs_unfinished", "jobs", ["state", "id"], postgresql_where=sa.text("finished_at is null"))
    op.drop_index("ix_jobs_state", "jobs")
    op.drop_index("ix_jobs_name", "jobs")
    op.drop_column("jobs", "traceparent")
    op.drop_column("jobs", "name")

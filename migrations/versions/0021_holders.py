"""Holders of leases: an attempt does not count whose worker was starved, not dead."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("lease_holder", sa.Uuid(), nullable=True))
    op.add_column("workers", sa.Column("holder", sa.Uuid(), nullable=True))


def downgrade() -> None:
    op.drop_column("workers", "holder")
    op.drop_column("jobs", "lease_holder")

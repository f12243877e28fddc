"""Time that a worker still compiles before each job begins at once."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("workers", sa.Column("kernels_left_seconds", sa.Float(), server_default="0", nullable=False))
    op.add_column("workers", sa.Column("compiling", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("workers", "compiling")
    op.drop_column("workers", "kernels_left_seconds")

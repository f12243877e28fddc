"""Counts of hold-out reuse."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "uses",
        sa.Column("data_digest", sa.String(), nullable=False),
        sa.Column("rows", sa.String(), nullable=False),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("data_digest", "rows", name=op.f("pk_uses")),
    )


def downgrade() -> None:
    op.drop_table("uses")

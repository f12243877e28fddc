"""Hashes of the rows that a version has learned from."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLE = "training_row_chunks"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_versions.model", "model_versions.version"],
            name=op.f("fk_training_row_chunks_model_version"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model", "version", "seq", name=op.f("pk_training_row_chunks")),
    )
    op.execute(f"alter table {TABLE} alter column payload set storage external")  # hashes do not compress


def downgrade() -> None:
    op.drop_table(TABLE)

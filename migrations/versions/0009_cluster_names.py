"""Names that a person gives to the clusters of a model version, with their history."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLE = "cluster_names"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("revision", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("names", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_versions.model", "model_versions.version"],
            name=op.f("fk_cluster_names_model_version_model_versions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model", "version", "revision", name=op.f("pk_cluster_names")),
    )


def downgrade() -> None:
    op.drop_table(TABLE)

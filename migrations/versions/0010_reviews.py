"""Rows that a classifier rejected and that wait for a label by a person."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TABLE = "reviews"
JSONB = postgresql.JSONB(none_as_null=True)


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column(
            "at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("classes", JSONB, nullable=False),
        sa.Column("columns", JSONB, nullable=False),
        sa.Column("data", JSONB, nullable=False),
        sa.Column("probabilities", JSONB, nullable=False),
        sa.Column("label", JSONB, nullable=True),
        sa.Column("labelled_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("dataset_id", sa.Uuid(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
        sa.UniqueConstraint("model", "version", "digest", name=op.f("uq_reviews_model_version_digest")),
        sa.CheckConstraint("dataset_id is null or labelled_at is not null", name=op.f("ck_reviews_exported")),
        sa.CheckConstraint("(label is null) = (labelled_at is null)", name=op.f("ck_reviews_labelled")),
    )
    op.create_index("ix_reviews_model_id", TABLE, ["model", "id"])
    waiting = sa.text("labelled_at is null")
    op.create_index("ix_reviews_waiting", TABLE, ["id"], postgresql_where=waiting)


def downgrade() -> None:
    op.drop_table(TABLE)

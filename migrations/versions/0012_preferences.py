"""Preferences of a person between candidates, from which weights of goals are learned."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TABLE = "preferences"
JSONB = postgresql.JSONB(none_as_null=True)


def upgrade() -> None:
    now = sa.text("clock_timestamp()")
    op.create_table(
        TABLE,
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), server_default=now, nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), server_default=now, nullable=False),
        sa.Column("goals", JSONB, nullable=False),
        sa.Column("l2", sa.Float(), nullable=False),
        sa.Column("optimise", JSONB, nullable=True),
        sa.Column("candidates", JSONB, nullable=False),
        sa.Column("comparisons", JSONB, server_default=sa.text("'[]'"), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("request_hash", sa.String(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("keys", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("last_hash", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_preferences")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_preferences_idempotency_key")),
    )


def downgrade() -> None:
    op.drop_table(TABLE)

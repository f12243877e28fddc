"""Online sessions, and model versions that are published from them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TABLE = "sessions"
VERSIONS = "model_versions"


def upgrade() -> None:
    now = sa.text("clock_timestamp()")
    op.create_table(
        TABLE,
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), server_default=now, nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), server_default=now, nullable=False),
        sa.Column("spec", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("request_hash", sa.String(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("revision", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tally", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.Column("keys", postgresql.JSONB(none_as_null=True), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("last_hash", sa.String(), nullable=True),
        sa.Column("last_response", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_sessions_idempotency_key")),
    )
    op.alter_column(VERSIONS, "job_id", nullable=True)
    op.alter_column(VERSIONS, "dataset_id", nullable=True)
    op.add_column(VERSIONS, sa.Column("session_id", sa.Uuid(), nullable=True))


def downgrade() -> None:
    op.execute(
        f"delete from aliases using {VERSIONS} v where v.session_id is not null and aliases.model = v.model "  # noqa: S608
        "and aliases.version = v.version"
    )
    op.execute(f"delete from {VERSIONS} where session_id is not null")  # noqa: S608 - a constant
    op.drop_column(VERSIONS, "session_id")
    op.alter_column(VERSIONS, "dataset_id", nullable=False)
    op.alter_column(VERSIONS, "job_id", nullable=False)
    op.drop_table(TABLE)

"""The audit log, to which the roles of the service can only append: `migrations.security` sees to that."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

OWN = "nullif(current_setting('valiant.project', true), '')::uuid"
DEFAULT = f"coalesce({OWN}, '00000000-0000-0000-0000-000000000000')"


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column(
            "at", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("outcome", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=sa.text(DEFAULT), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_project_id_id", "audit", ["project_id", "id"])


def downgrade() -> None:
    op.drop_table("audit")

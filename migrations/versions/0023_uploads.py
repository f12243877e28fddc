"""Files that arrive in parts, until a dataset is made of them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

OWN = "coalesce(nullif(current_setting('valiant.project', true), '')::uuid, '00000000-0000-0000-0000-000000000000')"
NOW = sa.text("clock_timestamp()")


def upgrade() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), server_default=NOW, nullable=False),
        sa.Column("updated_at", postgresql.TIMESTAMP(timezone=True), server_default=NOW, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(), nullable=True),
        sa.Column("offset_bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("chunks", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("dataset_id", sa.Uuid(), nullable=True),
        sa.Column("project_id", sa.Uuid(), server_default=sa.text(OWN), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
    )
    op.create_table(
        "upload_chunks",
        sa.Column("upload_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=sa.text(OWN), nullable=False),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.id"], name=op.f("fk_upload_chunks_upload_id_uploads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("upload_id", "seq", name=op.f("pk_upload_chunks")),
    )
    op.execute("alter table upload_chunks alter column payload set storage external")  # written once and read once


def downgrade() -> None:
    op.drop_table("upload_chunks")
    op.drop_table("uploads")

"""Formats of model files that a project may import besides the standard ones: none until an operator allows them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = postgresql.JSONB(none_as_null=True, astext_type=sa.Text())
    op.add_column("projects", sa.Column("file_formats", json, server_default=sa.text("'[]'"), nullable=False))


def downgrade() -> None:
    op.drop_column("projects", "file_formats")

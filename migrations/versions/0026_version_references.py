"""Distributions of the rows that a version was trained on."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0024"
branch_labels = None
depends_on = None

OWN = "coalesce(nullif(current_setting('valiant.project', true), '')::uuid, '00000000-0000-0000-0000-000000000000')"
VERSION = "project_id", "model", "version"


def upgrade() -> None:
    op.create_table(
        "version_references",
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("project_id", sa.Uuid(), server_default=sa.text(OWN), nullable=False),
        sa.ForeignKeyConstraint(
            VERSION,
            [f"model_versions.{name}" for name in VERSION],
            name=op.f("fk_version_references_project_id_model_version_model_versions"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(*VERSION, name=op.f("pk_version_references")),
    )


def downgrade() -> None:
    op.drop_table("version_references")

"""Projects, and the keys that reach them. The project `default` owns what was there before."""

from uuid import UUID

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
NOW = sa.text("clock_timestamp()")
JSON = postgresql.JSONB(none_as_null=True, astext_type=sa.Text())


def upgrade() -> None:
    projects = op.create_table(
        "projects",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
    )
    op.bulk_insert(projects, [{"id": UUID(int=0), "name": "default"}])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("prefix", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", JSON, nullable=False),
        sa.Column("models", JSON, nullable=True),
        sa.Column("created_by", sa.String(), nullable=True),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("changed_at", TIME, server_default=NOW, nullable=False),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_api_keys_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_keys_digest")),
    )
    op.create_index("ix_api_keys_project_id_id", "api_keys", ["project_id", "id"])
    op.create_index("ix_api_keys_changed_at", "api_keys", ["changed_at"])


def downgrade() -> None:
    op.drop_table("api_keys")
    op.drop_table("projects")

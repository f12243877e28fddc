"""Monitors of models, minutes and windows of what they log, and alarms."""

from uuid import UUID

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

OWN = "coalesce(nullif(current_setting('valiant.project', true), '')::uuid, '00000000-0000-0000-0000-000000000000')"
NOW = sa.text("clock_timestamp()")
TIME = postgresql.TIMESTAMP(timezone=True)
JSON = postgresql.JSONB(none_as_null=True, astext_type=sa.Text())
ALARMED = sa.text("state <> 'closed'")


def project() -> sa.Column[UUID]:
    return sa.Column("project_id", sa.Uuid(), server_default=sa.text(OWN), nullable=False)


def of_model(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_project_id_model_models")
    return sa.ForeignKeyConstraint(
        ["project_id", "model"], ["models.project_id", "models.name"], name=name, ondelete="CASCADE"
    )


def upgrade() -> None:
    op.create_table(
        "monitors",
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("updated_at", TIME, server_default=NOW, nullable=False),
        sa.Column("options", JSON, nullable=False),
        sa.Column("state", JSON, server_default=sa.text("'{}'"), nullable=False),
        project(),
        of_model("monitors"),
        sa.PrimaryKeyConstraint("project_id", "model", name=op.f("pk_monitors")),
    )
    op.create_table(
        "monitor_minutes",
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("start", TIME, nullable=False),
        sa.Column("writer", sa.Uuid(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("counts", JSON, nullable=False),
        project(),
        of_model("monitor_minutes"),
        sa.PrimaryKeyConstraint("project_id", "model", "version", "start", "writer", name=op.f("pk_monitor_minutes")),
    )
    op.create_table(
        "monitor_windows",
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("start", TIME, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("threshold", sa.Float(), nullable=False),
        sa.Column("tests", JSON, nullable=False),
        project(),
        of_model("monitor_windows"),
        sa.PrimaryKeyConstraint("project_id", "model", "version", "start", name=op.f("pk_monitor_windows")),
    )
    op.create_table(
        "alarms",
        sa.Column("id", sa.Uuid(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("model", "kind", "aspect", "column")),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("window_start", TIME, nullable=False),
        *(
            sa.Column(name, sa.Float(), nullable=False)
            for name in ("window_seconds", "statistic", "p_value", "evidence", "threshold")
        ),
        sa.Column("times", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("state", sa.String(), server_default=sa.text("'open'"), nullable=False),
        *(sa.Column(name, sa.String(), nullable=True) for name in ("owner", "link", "note")),
        sa.Column("muted_until", TIME, nullable=True),
        project(),
        sa.CheckConstraint("state in ('open', 'acknowledged', 'closed')", name=op.f("ck_alarms_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alarms")),
    )
    op.create_index("ix_alarms_project_id_id", "alarms", ["project_id", "id"])
    op.create_index("ix_alarms_project_id_model_id", "alarms", ["project_id", "model", "id"])
    op.create_index("ix_alarms_open", "alarms", ["project_id", "model"], postgresql_where=ALARMED)


def downgrade() -> None:
    for table in ("alarms", "monitor_windows", "monitor_minutes", "monitors"):
        op.drop_table(table)

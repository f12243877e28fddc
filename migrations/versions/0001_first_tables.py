"""First tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

JSON = postgresql.JSONB()
TIME = postgresql.TIMESTAMP(timezone=True)
NOW = sa.text("clock_timestamp()")


def upgrade() -> None:
    op.create_table(
        "alias_moves",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("at", TIME, server_default=NOW, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("previous_version", sa.Integer(), nullable=True),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alias_moves")),
    )
    op.create_index(op.f("ix_alias_moves_model"), "alias_moves", ["model"], unique=False)
    op.create_table(
        "datasets",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("file_format", sa.String(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("columns", JSON, nullable=False),
        sa.Column("warnings", JSON, server_default=sa.text("'[]'"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("request_hash", sa.String(), nullable=False),
        sa.Column("first_answer", JSON, nullable=True),
        sa.Column("dataset_id", sa.Uuid(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("algorithm", sa.String(), nullable=True),
        sa.Column("progress", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("message", sa.String(), server_default=sa.text("''"), nullable=False),
        sa.Column("curves", JSON, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("warnings", JSON, server_default=sa.text("'[]'"), nullable=False),
        sa.Column("error", JSON, nullable=True),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("time_limit_seconds", sa.Double(), nullable=False),
        sa.Column("lease_token", sa.Uuid(), nullable=True),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("not_before", TIME, server_default=NOW, nullable=False),
        sa.Column("published_at", TIME, nullable=True),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.CheckConstraint(
            "(finished_at is null) = (state in ('queued','running','cancelling'))", name=op.f("ck_jobs_finished")
        ),
        sa.CheckConstraint(
            "(lease_token is null) = (state not in ('running','cancelling'))", name=op.f("ck_jobs_lease")
        ),
        sa.CheckConstraint("version is null or state = 'succeeded'", name=op.f("ck_jobs_version")),
        sa.CheckConstraint(
            "state in ('queued','running','cancelling','succeeded','failed','cancelled','timed_out')",
            name=op.f("ck_jobs_state"),
        ),
        sa.CheckConstraint("(lease_until is null) = (lease_token is null)", name=op.f("ck_jobs_lease_until")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_jobs_idempotency_key")),
    )
    op.create_index("ix_jobs_dataset", "jobs", ["dataset_id"], unique=False)
    op.create_index(
        "ix_jobs_unfinished",
        "jobs",
        ["state", "id"],
        unique=False,
        postgresql_where=sa.text("finished_at is null"),
    )
    op.create_table(
        "models",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("last_version", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_models")),
    )
    op.create_table(
        "dataset_chunks",
        sa.Column("dataset_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("first_row", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_chunks_dataset_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("dataset_id", "seq", name=op.f("pk_dataset_chunks")),
    )
    op.create_table(
        "job_transitions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("at", TIME, server_default=NOW, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_transitions_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_transitions")),
    )
    op.create_index(op.f("ix_job_transitions_job_id"), "job_transitions", ["job_id"], unique=False)
    op.create_table(
        "model_versions",
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("dataset_id", sa.Uuid(), nullable=False),
        sa.Column("dataset_digest", sa.String(), nullable=False),
        sa.Column("created_at", TIME, server_default=NOW, nullable=False),
        sa.Column("algorithm", sa.String(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("parameters", JSON, nullable=False),
        sa.Column("target", sa.String(), nullable=True),
        sa.Column("classes", JSON, nullable=True),
        sa.Column("inputs", JSON, nullable=False),
        sa.Column("receipt", JSON, nullable=False),
        sa.Column("report", JSON, nullable=False),
        sa.Column("golden", JSON, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["model"], ["models.name"], name=op.f("fk_model_versions_model"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("model", "version", name=op.f("pk_model_versions")),
        sa.UniqueConstraint("job_id", name=op.f("uq_model_versions_job_id")),
    )
    op.create_index(op.f("ix_model_versions_digest"), "model_versions", ["digest"], unique=False)
    op.create_table(
        "aliases",
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", TIME, server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_versions.model", "model_versions.version"],
            name=op.f("fk_aliases_model_version"),
        ),
        sa.ForeignKeyConstraint(["model"], ["models.name"], name=op.f("fk_aliases_model"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("model", "alias", name=op.f("pk_aliases")),
    )
    op.create_table(
        "model_chunks",
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_versions.model", "model_versions.version"],
            name=op.f("fk_model_chunks_model_version"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model", "version", "seq", name=op.f("pk_model_chunks")),
    )
    for chunks in ("dataset_chunks", "model_chunks"):  # the bytes are compressed already
        op.execute(f"alter table {chunks} alter column payload set storage external")


def downgrade() -> None:
    op.drop_table("model_chunks")
    op.drop_table("aliases")
    op.drop_index(op.f("ix_model_versions_digest"), table_name="model_versions")
    op.drop_table("model_versions")
    op.drop_index(op.f("ix_job_transitions_job_id"), table_name="job_transitions")
    op.drop_table("job_transitions")
    op.drop_table("dataset_chunks")
    op.drop_table("models")
    op.drop_index("ix_jobs_unfinished", table_name="jobs", postgresql_where=sa.text("finished_at is null"))
    op.drop_index("ix_jobs_dataset", table_name="jobs")
    op.drop_table("jobs")
    op.drop_table("datasets")
    op.drop_index(op.f("ix_alias_moves_model"), table_name="alias_moves")
    op.drop_table("alias_moves")

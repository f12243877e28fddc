"""Each row has a project, by which policies keep projects apart: `migrations.security` makes those.

Keys begin with the project, so that two projects may each have a model of one name.
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

OWNED = (
    *("datasets", "dataset_chunks", "files", "file_chunks", "jobs", "job_transitions", "job_chunks", "uses"),
    *("models", "model_versions", "model_chunks", "training_row_chunks", "aliases", "alias_moves"),
    *("cluster_names", "reviews", "sessions", "preferences"),
)
OWN = "nullif(current_setting('valiant.project', true), '')::uuid"
DEFAULT = f"coalesce({OWN}, '00000000-0000-0000-0000-000000000000')"
"""Without a project, as the release before writes, it is the default one."""
KEYS = {
    "models": ["name"],
    "model_versions": ["model", "version"],
    "model_chunks": ["model", "version", "seq"],
    "training_row_chunks": ["model", "version", "seq"],
    "aliases": ["model", "alias"],
    "cluster_names": ["model", "version", "revision"],
    "uses": ["data_digest", "rows"],
}
"""Primary keys by a name that the caller gives."""
UNIQUE = {
    "jobs": ["idempotency_key"],
    "sessions": ["idempotency_key"],
    "preferences": ["idempotency_key"],
    "reviews": ["model", "version", "digest"],
}
MODEL, VERSION = ("models", ["model"], ["name"]), ("model_versions", ["model", "version"], ["model", "version"])
FOREIGN = (
    ("model_versions", "fk_model_versions_model", "fk_model_versions_project_id_model_models", *MODEL, "CASCADE"),
    ("aliases", "fk_aliases_model", "fk_aliases_project_id_model_models", *MODEL, "CASCADE"),
    (
        *("aliases", "fk_aliases_model_version", "fk_aliases_project_id_model_version_model_versions"),
        *(*VERSION, None),
    ),
    (
        *("model_chunks", "fk_model_chunks_model_version", "fk_model_chunks_project_id_model_version_model_versions"),
        *(*VERSION, "CASCADE"),
    ),
    (
        *("training_row_chunks", "fk_training_row_chunks_model_version"),
        *("fk_training_row_chunks_project_id_model_version_model_versions", *VERSION, "CASCADE"),
    ),
    (
        *("cluster_names", "fk_cluster_names_model_version_model_versions"),
        *("fk_cluster_names_project_id_model_version_model_versions", *VERSION, "CASCADE"),
    ),
)
"""Table, name before and after, the table it refers to, columns of both, and what happens when a row there goes."""


def upgrade() -> None:
    for table in OWNED:
        op.execute(f"alter table {table} add column project_id uuid not null default {DEFAULT}")
    for table, before, *_ in FOREIGN:
        op.drop_constraint(before, table, type_="foreignkey")
    _change_keys(["project_id"])
    for table, columns in UNIQUE.items():
        op.drop_constraint(f"uq_{table}_{'_'.join(columns)}", table, type_="unique")
        op.create_unique_constraint(f"uq_{table}_project_id_{'_'.join(columns)}", table, ["project_id", *columns])
    for table, _, after, referred, local, remote, ondelete in FOREIGN:
        op.create_foreign_key(
            after, table, referred, ["project_id", *local], ["project_id", *remote], ondelete=ondelete
        )


def _change_keys(further: list[str]) -> None:
    for table, columns in KEYS.items():
        op.drop_constraint(f"pk_{table}", table, type_="primary")
        op.create_primary_key(f"pk_{table}", table, [*further, *columns])


def downgrade() -> None:
    """Fails where two projects have a model of one name."""
    for table in (*OWNED, "api_keys"):
        for policy in ("project", "queue", "maintenance"):
            op.execute(f"drop policy if exists {policy} on {table}")
        op.execute(f"alter table {table} no force row level security, disable row level security")
    for table, _, after, *_ in FOREIGN:
        op.drop_constraint(after, table, type_="foreignkey")
    _change_keys([])
    for table, columns in UNIQUE.items():
        op.drop_constraint(f"uq_{table}_project_id_{'_'.join(columns)}", table, type_="unique")
        op.create_unique_constraint(f"uq_{table}_{'_'.join(columns)}", table, columns)
    for table, before, _, referred, local, remote, ondelete in FOREIGN:
        op.create_foreign_key(before, table, referred, local, remote, ondelete=ondelete)
    for table in OWNED:
        op.drop_column(table, "project_id")

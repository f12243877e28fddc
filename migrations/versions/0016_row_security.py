"""Projects are kept apart by Postgres: each row has one, and policies show a unit of work the rows of its own.

Keys begin with the project, so that two projects may each have a model of one name. Logins of every kind become one of
two roles, which no policy lets pass.
"""

from alembic import op

from migrations.roles import make_role

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

APP, QUEUE = "valiant_app", "valiant_queue"
OWNED = (
    *("datasets", "dataset_chunks", "files", "file_chunks", "jobs", "job_transitions", "job_chunks", "uses"),
    *("models", "model_versions", "model_chunks", "training_row_chunks", "aliases", "alias_moves"),
    *("cluster_names", "reviews", "sessions", "preferences"),
)
QUEUED = ("jobs", "job_transitions", "job_chunks", "files", "file_chunks", "api_keys")
"""Tables that workers look through for all projects, to find what is to be done or is left over."""
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
    _make_roles()
    for table in (*OWNED, "api_keys"):
        op.execute(f"alter table {table} enable row level security")
        mine = f"project_id = (select {OWN})"
        op.execute(f"create policy project on {table} using ({mine}) with check ({mine})")
    for table in QUEUED:
        op.execute(f"create policy queue on {table} to {QUEUE} using (true) with check (true)")


def _change_keys(further: list[str]) -> None:
    for table, columns in KEYS.items():
        op.drop_constraint(f"pk_{table}", table, type_="primary")
        op.create_primary_key(f"pk_{table}", table, [*further, *columns])


def _make_roles() -> None:
    """Their grants are those of each database."""
    for role in (APP, QUEUE):
        make_role(role)
        op.execute(f"grant usage on schema public to {role}")
        op.execute(f"grant select, insert, update, delete on all tables in schema public to {role}")
        op.execute(f"grant usage on all sequences in schema public to {role}")
        later = "alter default privileges in schema public grant"
        op.execute(f"{later} select, insert, update, delete on tables to {role}")
        op.execute(f"{later} usage on sequences to {role}")


def downgrade() -> None:
    """Fails where two projects have a model of one name."""
    for role in (APP, QUEUE):
        op.execute(f"alter default privileges in schema public revoke all on tables from {role}")
        op.execute(f"alter default privileges in schema public revoke all on sequences from {role}")
    for table in QUEUED:
        op.execute(f"drop policy queue on {table}")
    for table in (*OWNED, "api_keys"):
        op.execute(f"drop policy project on {table}")
        op.execute(f"alter table {table} disable row level security")
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

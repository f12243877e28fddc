"""Policies hold for the owner of the tables too, unless it states that it migrates or dumps them.

A connection that forgets to take a role of the service sees nothing. The owner is not always a superuser, and Postgres
refuses a dump of rows that a policy would hide: a session with `valiant.maintenance` on sees them.
"""

from alembic import op

from migrations.roles import make_role

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

OWNER = "valiant_owner"
TABLES = (
    *("datasets", "dataset_chunks", "files", "file_chunks", "jobs", "job_transitions", "job_chunks", "uses"),
    *("models", "model_versions", "model_chunks", "training_row_chunks", "aliases", "alias_moves"),
    *("cluster_names", "reviews", "sessions", "preferences", "api_keys", "audit"),
)
MAINTAINED = "current_setting('valiant.maintenance', true) = 'on'"


def upgrade() -> None:
    make_role(OWNER, inherited=True)
    for table in TABLES:
        op.execute(f"create policy maintenance on {table} to {OWNER} using ({MAINTAINED}) with check ({MAINTAINED})")
        op.execute(f"alter table {table} force row level security")


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"alter table {table} no force row level security")
        op.execute(f"drop policy maintenance on {table}")

"""Lists of the versions of all models, and of those of a dataset, newest first."""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_model_versions_project_id_created_at": ["project_id", "created_at", "model", "version"],
    "ix_model_versions_dataset": ["dataset_id", "created_at", "model", "version"],
}


def upgrade() -> None:
    for name, columns in INDEXES.items():
        op.create_index(name, "model_versions", columns)


def downgrade() -> None:
    for name in INDEXES:
        op.drop_index(name, "model_versions")

"""Policies hold for the owner of the tables too: `migrations.security` makes them so. No table changes."""

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass

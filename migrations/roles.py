"""Roles of the database server, which migrations make and grant to the login that runs the service."""

import sqlalchemy as sa
from alembic import op


def make_role(role: str, *, inherited: bool = False) -> None:
    """A role that no policy lets pass. It is of the whole server, and may be there; the login becomes a member.

    inherited: what the role may do, the login may without taking it. Before Postgres 16 that is so for every role.
    """
    database = op.get_bind()
    if not database.scalar(sa.text("select exists (select from pg_roles where rolname = :role)"), {"role": role}):
        op.execute(
            f"""do $$ begin
                create role {role} nologin nosuperuser nobypassrls;
            exception when duplicate_object or unique_violation then null; end $$"""
        )
    options = database.dialect.server_version_info >= (16,)  # type: ignore[operator]
    # With them CREATE ROLE grants its creator the role with ADMIN alone: SET ROLE would be refused.
    privilege = "member" if not options else "usage" if inherited else "set"
    held = sa.text("select pg_has_role(current_user, :role, :privilege)")
    if not database.scalar(held, {"role": role, "privilege": privilege}):
        op.execute(f"grant {role} to current_user" + (f" with inherit {inherited}, set true" if options else ""))

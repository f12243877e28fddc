"""Roles, privileges and policies that the catalogue of the database holds, and what the login may do there."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import Connection

FACTS = """  -- kind, object, role, detail
with relation as (
    select c.*, quote_ident(c.relname) as name, case c.relkind when 'S' then 'sequence' else 'table' end as kind
    from pg_class c
    where c.relnamespace = to_regnamespace('public') and (
        c.relkind in ('r', 'p') and c.relname = any(%(tables)s)
        or c.relkind = 'S' and exists (
            select from pg_depend d join pg_class t on t.oid = d.refobjid
            where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_class'::regclass
                and d.deptype in ('i', 'a') and t.relnamespace = c.relnamespace and t.relname = any(%(tables)s)
        )
    )
), service as (
    select oid, rolname::text as name from pg_roles where rolname = any(%(roles)s)
), grantee as (
    select * from service union all select 0, 'public'
), acl as (
    select kind, name, relacl as items, null as columns from relation
    union all
    select 'table', r.name, a.attacl, format(' (%%I)', a.attname)
    from relation r join pg_attribute a on a.attrelid = r.oid where a.attacl is not null
    union all
    select 'schema', 'public', nspacl, null from pg_namespace where nspname = 'public'
    union all
    select case defaclobjtype when 'S' then 'default sequences' else 'default tables' end,
        format('for role %%I', pg_get_userbyid(defaclrole))
            || case defaclnamespace when 0 then '' else ' in schema public' end,
        defaclacl, null
    from pg_default_acl where defaclobjtype in ('r', 'S') and defaclnamespace in (0, to_regnamespace('public'))
)
select 'relation', name, kind, case when exists (
    select from pg_attribute a where a.attrelid = relation.oid and a.attname = 'project_id' and not a.attisdropped
) then 'project' else '' end
from relation
union all
select 'role', name, '', '' from service
union all
select 'attribute', r.rolname, '', v.attribute
from pg_roles r, lateral (values
    ('superuser', rolsuper), ('bypassrls', rolbypassrls), ('createrole', rolcreaterole), ('createdb', rolcreatedb),
    ('replication', rolreplication), ('login', rolcanlogin)
) v (attribute, has)
where r.oid in (select oid from service) and v.has
union all
select distinct 'member', quote_ident(pg_get_userbyid(m.roleid)), s.name,
    case when %(granted_by)s then format(' granted by %%I', pg_get_userbyid(m.grantor)) else '' end
from pg_auth_members m join service s on s.oid = m.member
union all
select 'owner', 'table ' || r.name, s.name, '' from relation r join service s on s.oid = r.relowner
where r.kind = 'table'
union all
select 'owner', 'schema public', s.name, '' from pg_namespace n join service s on s.oid = n.nspowner
where n.nspname = 'public'
union all
select 'owner', format('database %%I', d.datname), s.name, '' from pg_database d join service s on s.oid = d.datdba
where d.datname = current_database()
union all
select distinct acl.kind, acl.name, g.name, lower(a.privilege_type) || coalesce(acl.columns, '')
from acl, lateral aclexplode(acl.items) a join grantee g on g.oid = a.grantee
where a.grantee <> 0 or acl.kind in ('table', 'sequence')
union all
select distinct 'grantable ' || acl.kind, acl.name, g.name, lower(a.privilege_type) || coalesce(acl.columns, '')
from acl, lateral aclexplode(acl.items) a join grantee g on g.oid = a.grantee
where a.is_grantable and acl.kind in ('table', 'sequence', 'schema')
union all
select 'protection', name, '', 'enable' from relation where relrowsecurity
union all
select 'protection', name, '', 'force' from relation where relforcerowsecurity
union all
select 'policy', r.name, quote_ident(p.polname), concat_ws(' ',
    case when p.polpermissive then 'permissive' else 'restrictive' end, p.polcmd, 'to',
    (select string_agg(coalesce(pg_get_userbyid(nullif(o, 0)), 'public'), ',' order by o) from unnest(p.polroles) o),
    'using', pg_get_expr(p.polqual, p.polrelid), 'with check', pg_get_expr(p.polwithcheck, p.polrelid))
from relation r join pg_policy p on p.polrelid = r.oid
"""
"""Query of all facts. A name is quoted where SQL demands it."""
LOGIN = """
select quote_ident(current_user), rolsuper, array(
    select r.rolname::text from pg_roles r
    where r.rolname = any(%(roles)s)
        and not pg_has_role(current_user, r.oid, case when r.rolname = %(owner)s then %(usage)s else %(set)s end)
    order by 1
), array(
    select quote_ident(c.relname) from pg_class c
    where c.relnamespace = to_regnamespace('public') and c.relkind in ('r', 'p') and c.relname = any(%(tables)s)
        and not pg_has_role(current_user, c.relowner, 'usage')
    order by 1
)
from pg_roles where rolname = current_user
"""
"""The login, the roles that it cannot take, and the tables that it cannot alter."""


class Fact(NamedTuple):
    """A line of the catalogue, or of what must hold. What the last three are depends on the kind."""

    kind: str
    target: str
    role: str = ""
    detail: str = ""


class Login(NamedTuple):
    """The login of a connection."""

    name: str
    superuser: bool
    roles_out_of_reach: list[str]
    tables_out_of_reach: list[str]


def read_facts(connection: Connection, tables: Collection[str], roles: Collection[str]) -> set[Fact]:
    """All facts about these tables of the schema `public`, their sequences, and these roles."""
    names = {"tables": [*tables], "roles": [*roles], "granted_by": has_options(connection)}
    return {Fact(*row) for row in connection.exec_driver_sql(FACTS, names)}


def read_login(connection: Connection, tables: Collection[str], roles: Collection[str], inherited: str) -> Login:
    """The login of the connection; of the role `inherited` it has to have the privileges without taking it."""
    privileges: Mapping[str, str] = {"usage": "usage", "set": "set"}
    if not has_options(connection):
        privileges = dict.fromkeys(privileges, "member")
    names = {"tables": [*tables], "roles": [*roles], "owner": inherited, **privileges}
    return Login(*connection.exec_driver_sql(LOGIN, names).one())


def has_options(connection: Connection) -> bool:
    """True from Postgres 16 on, where a membership states what it is good for. CREATE ROLE makes one for nothing."""
    version = connection.dialect.server_version_info
    return version is not None and int(version[0]) >= 16

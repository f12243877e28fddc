"""Roles, privileges and policies of the database: one table of what must hold, compared with the catalogue.

Migrations make tables alone. What protects their rows is made here, at each `valiant migrate`, wherever it is missing
and whatever is there beyond it: a restore, an administrator or another release may have changed it since.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.exc import InternalError, ProgrammingError

from app.base.errors import StartFailed
from app.store.access.access_tables import AuditRow, KeyRow
from app.store.all_tables import read_metadata
from app.store.datasets.dataset_tables import FileChunkRow, FileRow
from app.store.datasets.upload_tables import UploadChunkRow, UploadRow
from app.store.jobs.job_tables import JobCheckpointRow, JobChunkRow, JobRow, JobTransitionRow, JobUnitRow
from app.store.monitoring.monitoring_tables import AlarmRow, MonitorRow, MonitorWindowRow
from migrations.catalogue_facts import Fact, has_options, read_facts, read_login

APP, QUEUE, OWNER = "valiant_app", "valiant_queue", "valiant_owner"
ROLES = (APP, QUEUE, OWNER)
"""Roles of requests and jobs, of workers that look through all projects, and of a login that maintains the database."""
STAMP = "alembic_version"
METADATA = read_metadata()
TABLES = (*METADATA.tables, STAMP)
PROTECTED = frozenset(name for name, table in METADATA.tables.items() if "project_id" in table.columns)
"""Tables whose rows belong to projects: policies hold for everybody, their owner included."""
PRIVILEGES = MappingProxyType({STAMP: ("select",), AuditRow.__tablename__: ("select", "insert")})
"""Privileges of APP and QUEUE on tables that they do not change. Entries of the audit log stay as they are."""
ALL_PRIVILEGES = ("select", "insert", "update", "delete")
QUEUED = frozenset(
    row.__tablename__
    for row in (
        *(JobRow, JobTransitionRow, JobChunkRow, JobUnitRow, JobCheckpointRow, FileRow, FileChunkRow),
        *(KeyRow, UploadRow, UploadChunkRow, MonitorRow, MonitorWindowRow, AlarmRow),
    )
)
"""Tables that workers look through for all projects, to find what is to be done or is left over."""


class Policy(NamedTuple):
    """Rows of these tables that a role sees and writes."""

    role: str
    rows: str
    tables: frozenset[str]


POLICIES = MappingProxyType(
    {
        "project": Policy(
            "public", "project_id = (select nullif(current_setting('valiant.project', true), '')::uuid)", PROTECTED
        ),
        "queue": Policy(QUEUE, "true", QUEUED),
        # A login that is no superuser migrates and dumps rows of all projects, where it states that it does.
        "maintenance": Policy(OWNER, "current_setting('valiant.maintenance', true) = 'on'", PROTECTED),
    }
)
ATTRIBUTES = ("superuser", "bypassrls", "createrole", "createdb", "replication", "login")
"""Attributes that no role has."""
Templates: TypeAlias = Mapping[str, tuple[str, str]]
OBJECTS = ("schema", "table", "sequence")
MAKE: Templates = MappingProxyType(
    {
        "role": ("create role {target} nologin nosuperuser nobypassrls", "Role {target} is missing"),
        "member": ("grant {target} to {role}{detail}", "The login {role} cannot take the role {target}"),
        "owner": ("alter table {target} owner to {role}", "The login {role} cannot alter table {target}"),
        **{
            kind: (
                f"grant {{detail}} on {kind} {{target}} to {{role}}",
                f"Role {{role}} may not {{detail}} {kind} {{target}}",
            )
            for kind in OBJECTS
        },
        "protection": (
            "alter table {target} {detail} row level security",
            "Row level security of table {target} lacks {detail}",
        ),
        "policy": ("create policy {role} on {target} {detail}", "Table {target} lacks its policy {role}"),
    }
)
TAKE: Templates = MappingProxyType(
    {
        "attribute": ("alter role {target} no{detail}", "Role {target} has the attribute {detail}"),
        "member": ("revoke {target} from {role}{detail} cascade", "Role {role} is a member of {target}"),
        "owner": ("alter {target} owner to {login}", "Role {role} owns {target}"),
        **{
            f"default {kind}": (
                f"alter default privileges {{target}} revoke {{detail}} on {kind} from {{role}}",
                f"Role {{role}} may {{detail}} {kind} to come",
            )
            for kind in ("tables", "sequences")
        },
        **{
            f"grantable {kind}": (
                f"revoke grant option for {{detail}} on {kind} {{target}} from {{role}} cascade",
                f"Role {{role}} may pass on {{detail}} on {kind} {{target}}",
            )
            for kind in OBJECTS
        },
        **{
            kind: (
                f"revoke {{detail}} on {kind} {{target}} from {{role}} cascade",
                f"Role {{role}} may {{detail}} {kind} {{target}}",
            )
            for kind in OBJECTS
        },
        "protection": (
            "alter table {target} no force row level security, disable row level security",
            "Row level security of table {target} hides its rows",
        ),
        "policy": ("drop policy {role} on {target}", "Table {target} has another policy {role}"),
    }
)
"""Statement and fault by kind, in the order in which they run: what is too much goes before what is missing comes."""
NAMES = MappingProxyType(
    {"attribute": "role", "member": "membership"} | {kind: kind for kind in ("role", "owner", "protection", "policy")}
)
"""Names of repairs by kind; another kind is a grant or a revoke."""
PLURALS = MappingProxyType({"policy": "policies"})
SINGLE = frozenset({"role", "attribute", "member", "policy", "protection"})
"""Kinds of which a statement has one detail."""
PASSES = 4
"""A role that is made, or a table that changes hands, has privileges that were not there before."""


class Repair(NamedTuple):
    """A statement, what it is called, and what it makes right."""

    name: str
    target: str
    statement: str
    fault: str


class NotPermitted(StartFailed):
    """The login may not make what is missing; an administrator can, by these statements."""

    def __init__(self, login: str, statements: Iterable[str]) -> None:
        lines = "".join(f"\n    {statement};" for statement in statements)
        super().__init__(
            f"The login {login} of VALIANT_DATABASE_URL may not do what is left to do. An administrator can, in this "
            f"database:{lines}\nThen run `valiant migrate` again."
        )


def repair(connection: Connection) -> Counter[str]:
    """Make the tables that are there as they must be, and return how many things of each name were not.

    Raises NotPermitted. What the login may do is done nevertheless, and stays if the caller commits.
    """
    done: set[tuple[str, str]] = set()
    for _ in range(PASSES):
        if not (repairs := list_repairs(connection)):
            break
        for name, target, statement, _ in repairs:
            with suppress(ProgrammingError, InternalError), connection.begin_nested():
                connection.exec_driver_sql(statement)
                done.add((name, target))
    else:
        if repairs := list_repairs(connection):
            login = read_login(connection, TABLES, ROLES, inherited=OWNER)
            raise NotPermitted(login.name, [repair.statement for repair in repairs])
    return Counter(name for name, _ in done)


def describe(repaired: Counter[str]) -> str:
    """The counts as a phrase: "3 roles, 26 policies, 1 revoke"."""
    counted = ((name, PLURALS.get(name, f"{name}s") if number > 1 else name) for name, number in repaired.items())
    return ", ".join(f"{repaired[name]} {shown}" for name, shown in sorted(counted))


def list_repairs(connection: Connection, *, of_login: bool = True) -> list[Repair]:
    """Statements that make right what is missing or beyond the table, in the order in which they run.

    of_login: include what the login needs in order to migrate. A login that only serves needs no more than the roles.
    """
    login = read_login(connection, TABLES, ROLES, inherited=OWNER)
    facts = read_facts(connection, TABLES, ROLES)
    relations = {fact for fact in facts if fact.kind == "relation"}
    held = {_comparable(fact) for fact in facts - relations}
    required = {_comparable(fact): fact for fact in _required(relations)}
    missing = {required[fact] for fact in required.keys() - held}
    roles = {fact.target for fact in missing if fact.kind == "role"}
    if of_login:
        taken = () if login.superuser else roles | {*login.roles_out_of_reach}
        options = " with inherit {}, set true" if has_options(connection) else ""
        missing |= {Fact("member", role, login.name, options.format(role == OWNER)) for role in taken}
        missing |= {Fact("owner", table, login.name) for table in login.tables_out_of_reach}
    if roles:  # nothing else can refer to them yet
        return [*_statements(MAKE, {fact for fact in missing if fact.kind in {"role", "member"}}, login.name)]
    return [*_statements(TAKE, held - required.keys(), login.name), *_statements(MAKE, missing, login.name)]


def _required(relations: Iterable[Fact]) -> Iterator[Fact]:
    """The table, for those of its tables that are there."""
    yield from (Fact("role", role) for role in ROLES)
    yield from (Fact("schema", "public", role, "usage") for role in (APP, QUEUE))
    for _, name, kind, project in relations:
        privileges = ("usage",) if kind == "sequence" else PRIVILEGES.get(name, ALL_PRIVILEGES)
        yield from (Fact(kind, name, role, privilege) for role in (APP, QUEUE) for privilege in privileges)
        if name not in PROTECTED or not project:
            continue
        yield from (Fact("protection", name, detail=detail) for detail in ("enable", "force"))
        for policy, (role, rows, names) in POLICIES.items():
            if name in names:
                yield Fact("policy", name, policy, f"to {role} using ({rows}) with check ({rows})")


def _comparable(fact: Fact) -> Fact:
    """The same for each way in which versions of Postgres write the expression of a policy."""
    if fact.kind != "policy":
        return fact
    words = re.sub(r"::\w+|\bas \"?\w+\"?|[\s()\"]", "", fact.detail.lower().replace("permissive * ", ""))
    return fact._replace(detail=words)


def _statements(templates: Templates, facts: Iterable[Fact], login: str) -> Iterator[Repair]:
    """Privileges on one thing for one role are one statement."""
    order = {kind: number for number, kind in enumerate(templates)}
    shown = sorted(facts, key=lambda fact: (order[fact.kind], fact))
    for _, group in groupby(shown, key=lambda fact: fact if fact.kind in SINGLE else fact[:3]):
        (kind, target, role, _), *_ = alike = list(group)
        details = ", ".join(fact.detail for fact in alike)
        statement, fault = (
            template.format(target=target, role=role, detail=details, login=login) for template in templates[kind]
        )
        yield Repair(NAMES.get(kind, "grant" if templates is MAKE else "revoke"), f"{target} {role}", statement, fault)

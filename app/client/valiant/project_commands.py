"""`valiant projects` and `valiant usage`: the projects of the service with their limits, and what one uses of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from .service import Client
from .summary_table import SummaryTable
from .version_commands import Add

LIMITS = {
    "storage_bytes": "bytes stored",
    "model_versions": "model versions",
    "queued_jobs": "jobs that wait",
    "running_jobs": "jobs that run",
    "run_seconds_per_day": "seconds of jobs a day",
    "requests_per_second": "requests a second",
}
"""Limits of a project, in words."""


class Fields(NamedTuple):
    """Fields of a response, which `--json` prints."""

    fields: Mapping[str, Any]


def add_project_commands(add: Add) -> None:
    add("projects", _projects, "list the projects of the service and their limits; needs a key of an operator")
    add("usage", _usage, "show what the project of the key uses of its limits")


def _projects(service: Client) -> tuple[list[Fields], SummaryTable]:
    projects = service.projects()
    rows = [
        [each["name"], *(each["quotas"].get(limit) for limit in LIMITS), each["created_at"][:10]] for each in projects
    ]
    table = SummaryTable("", ("project", *LIMITS.values(), "created"), rows, ("An empty cell is no limit.",))
    return [Fields(each) for each in projects], table


def _usage(service: Client) -> tuple[Fields, SummaryTable]:
    usage = service.usage()
    rows = [[text, usage.get(limit), usage["quotas"].get(limit)] for limit, text in LIMITS.items()]
    return Fields(usage), SummaryTable(f"project {usage['project']}", ("what", "used", "limit"), rows)

"""`valiant keys`: list the keys of the project, and create, rotate or revoke one."""

import argparse
import sys
from pathlib import Path
from typing import Any

from .api_key import ApiKey
from .service import Client
from .summary_table import SummaryTable

ROLES = ("caller", "viewer", "editor", "admin", "operator")


def add_key_commands(keys: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = keys.add_subparsers(metavar="action")

    def add(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=text, description=text, parents=[common])
        action.set_defaults(client=run)
        return action

    create = add(
        "create", create_key,
        "create a key and print it, this once: with a key of an administrator by the service, without one in its "
        "database (VALIANT_DATABASE_URL, or the embedded one in VALIANT_DATA)",
    )  # fmt: skip
    create.add_argument("--role", choices=ROLES, required=True, help="what the key may do")
    create.add_argument("--name", help="name for people (the role)")
    create.add_argument("--project", help="project that the key reaches (that of the creating key, or default)")
    create.add_argument("--models", action="append", help="pattern of models, such as 'fraud-*'; repeatable (all)")
    create.add_argument("--days", type=int, default=90, dest="expires_in_days", help="days until it expires (90)")
    create.add_argument(
        "--data", type=Path, help="folder of the embedded servers, as of `valiant up`: the key is created in their "
        "database, whatever key is configured (VALIANT_DATA, or var)"
    )  # fmt: skip
    rotate = add("rotate", _rotate, "replace a key by a new one that may do the same, and print that, this once")
    rotate.add_argument("key", help="id of the key")
    rotate.add_argument("--grace", type=int, metavar="SECONDS", help="seconds the old key still works (a day)")
    revoke = add("revoke", _revoke, "end a key: within two seconds it is accepted nowhere")
    revoke.add_argument("key", help="id of the key")


def key_spec(options: dict[str, Any]) -> dict[str, Any]:
    """The fields of a request for a key."""
    return {name: value for name, value in options.items() if value is not None} | {
        "name": options["name"] or options["role"]
    }


def create_key(service: Client, **options: Any) -> Any:
    return _shown(service.create_key(**key_spec(options)))


def _rotate(service: Client, key: str, grace: int | None) -> Any:
    return _shown(service.key(key).rotate(grace))


def _revoke(service: Client, key: str) -> None:
    service.key(key).revoke()


def list_keys(service: Client) -> tuple[list[ApiKey[Any]], SummaryTable]:
    keys = service.keys()
    rows = [[each.id, each.name, each.prefix, " ".join(each.scopes), _until(each)] for each in keys]
    return keys, SummaryTable("", ("id", "name", "begins with", "scopes", "until"), rows)


def _until(key: ApiKey[Any]) -> str:
    return f"revoked {key.revoked_at[:10]}" if key.revoked_at else key.expires_at[:10]


def _shown(key: ApiKey[Any]) -> tuple[ApiKey[Any], "_Secret"]:
    return key, _Secret(key.secret or "", key.expires_at)


class _Secret:
    """The key alone on stdout, so that it can be piped to where it is kept."""

    def __init__(self, secret: str, expires_at: str) -> None:
        self._secret, self._expires_at = secret, expires_at

    def text(self, _: int | None) -> str:
        print(f"Keep this key: it is not shown again. It expires on {self._expires_at[:10]}.", file=sys.stderr)
        return self._secret

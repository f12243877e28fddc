"""The command `valiant`: up, demo, api, serve, worker, migrate, warm, health, backup, restore, doctor, the client's.

What a command needs is imported when it runs: `valiant --help` must not wait for numpy.
"""
# ruff: noqa: PLC0415 - for that reason

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.processes.process_memory import uncollected, without_optional

MAX_WATCH_SECONDS = 86_400


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done or stopped on request, 1 could not start, 2 wrong arguments or settings, and the client's."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = vars(_parser(arguments).parse_args(arguments))
    if "client" in options:
        from valiant.commands import perform
        from valiant.configuration import configured
        from valiant.key_commands import create_key

        in_database = options["client"] is create_key and (options["data"] or configured(options["url"]).key is None)
        if not in_database:
            return perform(options)
        options["run"] = _first_key
    run = options.pop("run")
    try:
        run(options, _settings(options))
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            print(f"valiant: VALIANT_{str(fault['loc'][0]).upper()}: {fault['msg']}", file=sys.stderr)
        return 2
    except StartFailed as error:
        print(f"valiant: {error}", file=sys.stderr)
        return 1
    return 0


def _settings(options: dict[str, Any]) -> Settings:
    """From the environment; what was given on the command line wins."""
    chosen_options = {name: options[name] for name in Settings.model_fields if options.get(name) is not None}
    return Settings(**chosen_options)


def _up(options: dict[str, Any], settings: Settings) -> None:
    from app.commands.up import up

    _demand_processor()
    up(settings, workers=options["workers"])


def _demo(options: dict[str, Any], settings: Settings) -> None:
    from app.commands.demo import demo

    _demand_processor()
    demo(settings, workers=options["workers"], once=options["once"])


def _api(_: dict[str, Any], settings: Settings) -> None:
    _need(settings, "database_url", "broker_url", "cache_url")
    from app.processes.ports import demand_keys

    demand_keys(settings)
    _prepare_to_import()
    with uncollected():
        from app.commands.serve import serve
        from app.main import create_app

        app = create_app(settings)
    serve(app, settings)


def _serve(options: dict[str, Any], settings: Settings) -> None:
    root = options["path"] or options["model_dir"]
    if root is None:
        raise StartFailed("Give the folder of the models: `valiant serve PATH`.")
    if not root.exists():
        raise StartFailed(f"There is no {root}: give a folder of models, or a file of one.")
    if options["anonymous"]:
        settings = settings.model_copy(update={"allow_anonymous": "network"})
    _prepare_to_import()
    with uncollected():
        from app.commands.serve_folder import FolderOptions, serve_folder
    chosen = FolderOptions(
        watch_seconds=options["watch"],
        repository_api=options["repository_api"],
        strict_readiness=options["strict_readiness"],
        model_name=options["model_name"] or os.environ.get("MODEL_NAME") or None,
    )
    serve_folder(settings, root, chosen)


def _prepare_to_import() -> None:
    """Before anything else is imported. Raises StartFailed where the processor is not what VALIANT_PROCESSOR names."""
    _demand_processor()
    _one_thread_for_linear_algebra()
    without_optional()


def _worker(_: dict[str, Any], settings: Settings) -> None:
    _need(settings, "database_url", "broker_url", "cache_url")
    _prepare_to_import()
    with uncollected():
        from workers.main import main as work
    if status := work(settings):
        sys.exit(status)


def _demand_processor() -> None:
    from app.ml.numerics.processor import demand_processor

    demand_processor()


def _warm(options: dict[str, Any], _: Settings) -> None:
    _demand_processor()
    _one_thread_for_linear_algebra()
    from app.services.kernels.warming import check, warm_here, warm_into

    if options["check"]:
        check(options["out"])
    elif options["out"] is None:
        warm_here()
    else:
        warm_into(options["out"])


def _one_thread_for_linear_algebra() -> None:
    """Requests and jobs are what runs side by side. Read when numpy is imported, hence not later."""
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def _migrate(_: dict[str, Any], settings: Settings) -> None:
    _need(settings, "database_url")
    from sqlalchemy.exc import DBAPIError

    from migrations.schema_revision import upgrade

    assert settings.database_url is not None  # noqa: S101 - `_need` has just seen to that
    try:
        repaired = upgrade(settings.database_url.get_secret_value())
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        raise StartFailed(f"The database of VALIANT_DATABASE_URL cannot be migrated: {reason}") from error
    if repaired:
        print(f"repaired: {repaired}")


def _first_key(options: dict[str, Any], settings: Settings) -> None:
    """By whoever has no key yet, but the database."""
    from app.commands.first_key import print_key
    from app.schemas.keys import KeySpec
    from valiant.key_commands import key_spec

    fields = {name: options[name] for name in ("name", "role", "project", "models", "expires_in_days")}
    try:
        spec = KeySpec.model_validate_json(json.dumps(key_spec(fields)))
    except ValidationError as error:
        faults = [f"--{fault['loc'][0]}: {fault['msg']}" for fault in error.errors(include_url=False)]
        raise StartFailed(" ".join(faults)) from error
    print_key(settings, spec)


def _backup(options: dict[str, Any], settings: Settings) -> None:
    from app.commands.backup import backup

    backup(settings, options["file"])


def _restore(options: dict[str, Any], settings: Settings) -> None:
    from app.commands.restore import restore

    restore(settings, options["file"], replace=options["replace"], revoke_keys=options["revoke_keys"])


def _doctor(_: dict[str, Any], settings: Settings) -> None:
    from app.commands.doctor import doctor

    doctor(settings)


def _workers(_: dict[str, Any], settings: Settings) -> None:
    from app.commands.workers import print_workers

    print_workers(settings)


def _health(options: dict[str, Any], settings: Settings) -> None:
    from app.processes.health import check, check_ready

    (check_ready if options["ready"] else check)(settings)


def _need(settings: Settings, *names: str) -> None:
    missing = [f"VALIANT_{name.upper()}" for name in names if getattr(settings, name) is None]
    if missing:
        raise StartFailed(f"Set {', '.join(missing)}, or use `valiant up`, which starts servers of its own.")
    if settings.database_url is not None:
        from app.store.engine import driver_url

        driver_url(settings.database_url.get_secret_value())


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="valiant",
        description="Trains, certifies and serves classical machine-learning models over REST.",
        epilog="Every setting is also a VALIANT_… environment variable; the guide lists them.",
    )
    parser.add_argument("--version", action="version", version=f"valiant {version('valiant')}")
    commands = parser.add_subparsers(required=True, metavar="command")

    address = argparse.ArgumentParser(add_help=False)
    address.add_argument("--host", help="address to listen on (127.0.0.1)")
    address.add_argument("--port", type=int, help="port to listen on, 0 for any free one (8000)")
    local = argparse.ArgumentParser(add_help=False, parents=[address])
    local.add_argument("--data", type=Path, help="folder of the embedded servers (./var)")
    local.add_argument("--workers", type=_count, default=1, help="worker processes (1)")

    def add(name: str, run: Any, text: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text, parents=parents)
        command.set_defaults(run=run)
        return command

    add("up", _up, "run everything: embedded Postgres and Redis, API and workers", local)
    demo = add("demo", _demo, "the same, and show a model being trained and used", local)
    demo.add_argument("--once", action="store_true", help="end after the show instead of serving")
    add("api", _api, "run the API on servers given by VALIANT_…_URL", address)
    served = add("serve", _serve, "serve the models of a folder, without a database, a cache or a worker", address)
    served.add_argument("path", nargs="?", type=Path, help="folder of models, or file of one")
    served.add_argument("--model_dir", type=Path, help="the same, as KServe names it")
    served.add_argument("--model_name", help="name of the model of a folder that holds one (MODEL_NAME)")
    served.add_argument(
        "--watch", type=_seconds, default=2.0, metavar="SECONDS", help="time between looks for changes (2); 0: none"
    )
    served.add_argument(
        "--strict-readiness", action="store_true", help="be ready only while every model of the folder is served"
    )
    served.add_argument("--repository-api", action="store_true", help="list, load and unload models by HTTP")
    served.add_argument("--anonymous", action="store_true", help="listen for other machines without keys")
    add("worker", _worker, "run one worker on servers given by VALIANT_…_URL")
    add("migrate", _migrate, "bring the database of VALIANT_DATABASE_URL up to date")
    warmed = add("warm", _warm, "compile every kernel, so that nothing is compiled at its first use")
    warmed.add_argument(
        "--out",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="DIR",
        help="compile for each class of processors, into this folder, or that of the package",
    )
    warmed.add_argument("--check", action="store_true", help="compile nothing: exit with 1 if a kernel is missing")
    health = add("health", _health, "exit with 0 if the API or the worker on this machine responds", address)
    health.add_argument("--ready", action="store_true", help="exit with 0 if the API is ready for requests: /readyz")
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument("--data", type=Path, help="folder of the embedded servers (./var)")
    add("doctor", _doctor, "check the database, its data and the servers, with a remedy for each fault", folder)
    add("workers", _workers, "list the workers, what each runs, and how many jobs wait", folder)
    file = argparse.ArgumentParser(add_help=False, parents=[folder])
    file.add_argument("file", type=Path, help="file of the backup")
    add("backup", _backup, "write all data into a file, while the service runs or not", file)
    restored = add("restore", _restore, "restore the data of a file, while the service does not run", file)
    restored.add_argument("--replace", action="store_true", help="take away what the database holds")
    restored.add_argument("--revoke-keys", action="store_true", help="revoke all keys that the backup holds")
    if not arguments or arguments[0] not in commands.choices:
        from valiant.commands import add_commands

        add_commands(commands)
    return parser


def _seconds(text: str) -> float:
    if not 0 <= (seconds := float(text)) <= MAX_WATCH_SECONDS:
        raise argparse.ArgumentTypeError(f"a number from 0 to {MAX_WATCH_SECONDS}")
    return seconds


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())

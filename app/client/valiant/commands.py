"""Commands of a terminal: train, import, predict, and look at datasets, jobs, models and reports.

Exit codes: 0 done, 1 failed, 2 wrong arguments, 3 the job did not succeed, 4 the service refused the request, 130
interrupted, 5 drift that `--fail-on` names.
"""

import argparse
import getpass
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import connect
from .configuration import store
from .dataset import BY_SUFFIX, Dataset
from .drift_report import DriftFound
from .failures import ConnectionLost, JobFailed, Problem, ServiceFault, Unavailable, ValiantError
from .fitted_estimator import load, read_rows, write_estimator
from .fitted_parts import SKLEARN
from .key_commands import add_key_commands, list_keys
from .progress_line import ProgressLine
from .project_commands import add_project_commands
from .record import Record
from .service import ALGORITHM, Client
from .submitted_job import Job
from .summary_table import SummaryTable, metric_name
from .transfers import FILE_FORMATS
from .version_commands import Add, add_version_commands

FAILED, WRONG_ARGUMENTS, JOB_FAILED, REFUSED, DRIFTED = 1, 2, 3, 4, 5
INTERRUPTED = 130
"""The exit code of a shell after Ctrl-C: 128 and the number of the signal."""
MAX_LISTED = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m valiant`: these commands alone."""
    parser = argparse.ArgumentParser(prog="valiant", description="Trains and uses models on a Valiant service.")
    add_commands(parser.add_subparsers(required=True, metavar="command"))
    return perform(vars(parser.parse_args(arguments)))


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of a parser."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--url", help="address of the service (VALIANT_URL, or that of `valiant login`)")
    common.add_argument("--json", action="store_true", help="print JSON for programs")
    common.add_argument("--timeout", type=float, default=60.0, help="seconds without a response (60)")

    def add(name: str, run: Callable[..., Any], text: str) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, parents=[common])
        command.set_defaults(client=run)
        return command

    login = add("login", _login, "keep the address and the key of a service for later commands")
    login.add_argument("address", help="such as https://models.example")
    upload = add("upload", _upload, "upload a table; a large file goes in parts, and on after a broken connection")
    upload.add_argument("table", type=_existing, help="a file, or a zip archive with one table")
    upload.add_argument("--name", help="name of the dataset (that of the file)")
    upload.add_argument("--resume", metavar="UPLOAD", help="id of an upload of the same file that was broken off")
    train = add("train", _train, "train a model on a file or a dataset")
    train.add_argument("table", help="a file, or the name or id of a dataset")
    train.add_argument("--target", help="column to predict")
    train.add_argument("--model", help="model that gets the version (the name of the dataset)")
    train.add_argument("--algorithm", default=ALGORITHM, help=f"algorithm ({ALGORITHM})")
    imported = add("import", _import, "import a model file of XGBoost, LightGBM, scikit-learn, ONNX or Valiant")
    imported.add_argument(
        "file",
        type=_existing,
        help="what `save_model` of the library, or joblib, has written: the latter is opened here, and never sent",
    )
    imported.add_argument("--model", help="model that gets the version (the name of the file)")
    imported.add_argument(
        "--format", dest="file_format", choices=sorted({*FILE_FORMATS.values()}),
        help=f"format of the file (by its suffix: {', '.join(FILE_FORMATS)})",
    )  # fmt: skip
    imported.add_argument(
        "--check", type=_existing, metavar="FILE",
        help="rows that have to be predicted alike: for an estimator of scikit-learn a CSV of its inputs; for other "
        "files with columns `prediction` or `probability_…`, as `valiant predict` writes them",
    )  # fmt: skip
    convert = add(
        "convert", _convert, "write an estimator of scikit-learn as a file that `valiant serve` and imports read"
    )
    convert.add_argument("file", type=_existing, help="what joblib has written; it is opened here: open your own alone")
    convert.add_argument("-o", "--output", type=_ending([".json"]), required=True, help="file to write, .json")
    for command, set_what in ((train, "a parameter of the algorithm or a field"), (imported, "a field")):
        command.add_argument(
            "-s", "--set", action="append", default=[], type=_assignment, metavar="NAME=VALUE",
            help=f"{set_what} of the request, its value as JSON or text; repeatable",
        )  # fmt: skip
    predict = add("predict", _predict, "predict the rows of a file")
    predict.add_argument("model", help="name of the model")
    predict.add_argument("rows", type=_existing, help="file with the columns of the model")
    predict.add_argument(
        "-o", "--output", type=_ending(BY_SUFFIX), help="file to write: .csv, .parquet or .arrow (CSV, printed)"
    )
    predict.add_argument("--version", type=int, help="version of the model (the champion, else the newest)")
    predict.add_argument("--alias", help="alias of the model")
    predict.add_argument("--confidence", type=float, help="confidence of intervals of a regression")
    predict.add_argument("--keep", action="append", default=[], help="column of the file to keep; repeatable")
    predict.add_argument("--keep-all", action="store_true", help="keep all columns of the file")
    _add_lists(add)
    add_version_commands(add, _table_of)
    add_project_commands(add)
    add_key_commands(add("keys", list_keys, "list the keys of the project, or create, rotate or revoke one"), common)


def _add_lists(add: Add) -> None:
    """Commands that show what there is."""
    models = add("models", _models, "list the models, or the versions of one")
    models.add_argument("model", nargs="?", help="name of a model")
    report = add("report", _report, "show the metrics of a model")
    report.add_argument("model", help="name of the model")
    report.add_argument("--version", type=int, help="version of the model (the newest)")
    report.add_argument("-o", "--output", type=_ending([".html"]), help="HTML file to write, with all tables and plots")
    jobs = add("jobs", _jobs, "list the newest jobs, or show one")
    jobs.add_argument("job", nargs="?", help="id or name of a job")
    jobs.add_argument("-f", "--follow", action="store_true", help="wait for the job, or for the newest unfinished one")
    jobs.add_argument("--state", help="list jobs of this state only")
    datasets = add("datasets", _datasets, "list the newest datasets, or the columns of one")
    datasets.add_argument("dataset", nargs="?", help="id or name of a dataset")


def perform(options: dict[str, Any]) -> int:
    """Run the command of the parsed arguments; the result is the exit code."""
    run, options = options["client"], {name: value for name, value in options.items() if name != "client"}
    url, timeout, as_json = (options.pop(name) for name in ("url", "timeout", "json"))
    try:
        with connect(url, timeout=timeout) as service:
            _print(run(service, **options), as_json=as_json)
    except DriftFound as error:
        _print(error.report, as_json=as_json)
        return _failed(error, DRIFTED)
    except (argparse.ArgumentError, JobFailed) as error:
        return _failed(error, JOB_FAILED if isinstance(error, JobFailed) else WRONG_ARGUMENTS)
    except Problem as error:
        return _failed(error, FAILED if isinstance(error, (ServiceFault, Unavailable)) else REFUSED)
    except (ValiantError, OSError) as error:
        return _failed(error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _failed(error: Exception, code: int) -> int:
    print(f"valiant: {error}", file=sys.stderr)
    return code


def _print(result: Any, *, as_json: bool) -> None:
    """A record, or a list with the table that shows it; nothing where the command has printed by itself."""
    if result is None:
        return
    records, table = result if isinstance(result, tuple) else (result, result.overview())
    if as_json:
        fields = [each.fields for each in records] if isinstance(records, list) else records.fields
        print(json.dumps(fields, ensure_ascii=False, indent=1))
    else:
        print(table.text(os.get_terminal_size().columns if sys.stdout.isatty() else None))


def _login(_: Client, address: str) -> None:
    key = getpass.getpass("Key (empty: none): ") if sys.stdin.isatty() else sys.stdin.readline().strip()
    print(f"Stored in {store(address, key or None)}.", file=sys.stderr)


def _upload(service: Client, table: Path, name: str | None = None, resume: str | None = None) -> Dataset[Any]:
    """The dataset, with the progress of a large file on a terminal. Where it breaks off, print how to go on."""
    line, last = ProgressLine(table.name), dict[str, Any]()

    def show(upload: Mapping[str, Any]) -> None:
        last.update(upload)
        line.draw(upload["offset"] / upload["size_bytes"], f"{upload['offset'] >> 20} MiB sent")

    try:
        return service.upload(table, name, resume=resume, progress=show)
    except (KeyboardInterrupt, ConnectionLost):
        if last:
            path, upload = shlex.quote(str(table)), last["id"]
            print(f"\nGo on within a day: `valiant upload {path} --resume {upload}`", file=sys.stderr)
        raise
    finally:
        if last:
            line.end()


def _train(service: Client, table: str, target: str | None, model: str | None, algorithm: str, **options: Any) -> Any:
    fields = dict(options["set"])
    return service.train(_table_of(service, table), target, model=model, algorithm=algorithm, **fields)


def _table_of(service: Client, table: str) -> Dataset[Any]:
    """An uploaded file, or the dataset of a reference."""
    return _upload(service, Path(table)) if Path(table).is_file() else service.dataset(table)


def _import(service: Client, file: Path, model: str | None, file_format: str | None, **options: Any) -> Any:
    form = file_format or FILE_FORMATS.get(file.suffix)
    if form is None:
        raise argparse.ArgumentError(None, f"the suffix of {file.name!r} names no format: give --format")
    if form == SKLEARN:
        rows = None if options["check"] is None else read_rows(options["check"])
        return service.import_estimator(load(file), model or file.stem, check=rows, **dict(options["set"]))
    return service.import_file(file, model, file_format=form, **{"check": options["check"], **dict(options["set"])})


def _convert(_: Client, file: Path, output: Path) -> None:
    write_estimator(load(file), output)
    print(f"Written to {output}.", file=sys.stderr)


def _predict(service: Client, model: str, rows: Path, output: Path | None, keep_all: bool, **options: Any) -> None:
    """Both datasets of the job are deleted when the predictions are here."""
    uploaded = _upload(service, rows)
    if keep_all:
        options["keep"] = [column["name"] for column in uploaded.columns]
    try:
        chosen = {name: value for name, value in options.items() if value}
        made = service.run("predict", model=model, dataset=uploaded, **chosen)
        try:
            if output is not None:
                made.download(output)
            else:
                _copy(made)
        finally:
            made.delete()
    finally:
        uploaded.delete()


def _copy(table: Dataset[Any]) -> None:
    """Print a dataset as CSV, once it is here whole."""
    with tempfile.TemporaryDirectory() as folder, table.download(Path(folder) / "rows.csv").open() as file:
        sys.stdout.writelines(file)


def _models(service: Client, model: str | None) -> tuple[list[Record[Any]], SummaryTable]:
    if model is None:
        records: list[Any] = service.models()
        rows = [[each.name, len(each.versions), each.latest_version, each.as_aliases()] for each in records]
        return records, SummaryTable("", ("model", "versions", "newest", "aliases"), rows)
    named = service.model(model)
    records = [named.version(number) for number in reversed(named.versions)]
    rows = [[each.version, each.algorithm, each.task, *_first_metric(each), each.created_at[:10]] for each in records]
    return records, SummaryTable(
        f"{model}: {named.as_aliases() or 'no aliases'}",
        ("version", "algorithm", "task", "metric", "value", "created"),
        rows,
    )


def _first_metric(version: Any) -> tuple[str, str]:
    metric = next(iter(version.metrics), None)
    return ("", "") if metric is None else (metric_name(metric), metric["display"])


def _report(service: Client, model: str, version: int | None, output: Path | None) -> Any:
    record = service.model(model).version(version)
    if output is None:
        return record.report
    record.save_report(output)
    return None


def _jobs(service: Client, job: str | None, follow: bool, state: str | None) -> Any:
    if job is not None:
        return service.job(job).wait() if follow else service.job(job)
    listed = service.jobs(MAX_LISTED, state=state)
    if follow:
        return next((each.wait() for each in listed if not each.finished), None)
    rows = [[each.name or each.id, each.kind, _state(each), each.model] for each in listed]
    return listed, SummaryTable("", ("job", "kind", "state", "model"), rows)


def _state(job: Job[Any]) -> str:
    """The state; of a job that runs, with the share that is done."""
    return f"running {job.progress:.0%}" if job.state == "running" else job.state


def _datasets(service: Client, dataset: str | None) -> Any:
    if dataset is not None:
        return service.dataset(dataset)
    records = service.datasets(MAX_LISTED)
    rows = [
        [each.name or each.id, each.rows, len(each.columns), each.file_format, each.created_at[:19]] for each in records
    ]
    return records, SummaryTable("", ("dataset", "rows", "columns", "format", "created"), rows)


def _existing(text: str) -> Path:
    if not (path := Path(text)).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text!r}")
    return path


def _ending(suffixes: Collection[str]) -> Callable[[str], Path]:
    """A path with one of the suffixes."""

    def read(text: str) -> Path:
        if (path := Path(text)).suffix not in suffixes:
            raise argparse.ArgumentTypeError(f"{text!r} must end with {' or '.join(suffixes)}")
        return path

    return read


def _assignment(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value, parse_constant=str)
    except ValueError:
        return name, value

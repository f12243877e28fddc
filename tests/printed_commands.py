"""Commands that the project prints: blocks of its pages, code in its prose, and those that messages and comments name.

Any of them may be one that a reader types, so all of them are checked here without being run: by the parser of
`valiant` itself, the OpenAPI document, the compose file, the manifest of Kubernetes and the extras of the package.
"""

import argparse
import inspect
import re
import shlex
import subprocess
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch
from urllib.parse import parse_qsl, urlsplit

import yaml
from markdown_it import MarkdownIt

import valiant
from app import cli
from app.api import folder_routes
from app.base.settings import Settings
from tests.openapi_document import openapi_document
from valiant import commands
from valiant.dataset import Dataset
from valiant.model_version import Model, Version
from valiant.service import Client

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "app" / "docs").glob("*.md")))
PROGRAMS = ("app", "workers", "migrations", "tests/benchmarks")
FILES = (
    *(path for folder in PROGRAMS for path in sorted((ROOT / folder).rglob("*.py"))),
    *sorted(path for path in (ROOT / "app" / "deployment").iterdir() if path.is_file()),
    *sorted((ROOT / "app" / "deployment" / "chart").rglob("*.yaml")),
    *(ROOT / name for name in ("Dockerfile", "docker-compose.yml")),
)
"""Files whose messages, descriptions and comments name commands."""
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE")
CLIENT = {"v": (Client,), "m": (Model, Version), "d": (Dataset,)}
"""What the pages call by these names."""
PLACEHOLDER = re.compile(r"\{.*\}|<.*>|.*…")
MARK = re.compile(r"<!-- (not run|run by): (.*\S) -->\n?")
PLAIN = {
    *("cd", "cp", "do", "done", "export", "for", "grep", "ls", "mkdir", "mv", "pytest", "rm", "unset"),
    *("pg_dump", "pg_restore", "psql", "sleep", "until"),
}
"""Programs whose arguments are not looked into."""
NAME_ALONE = re.compile(r"[a-z]+( (create|rotate|revoke))?")
"""A command that is named, not typed: its arguments are left out."""
SEPARATORS = re.compile(r"[&|;()]+")
VARIABLES = {f"VALIANT_{name.upper()}" for name in Settings.model_fields} | {"VALIANT_KEY", "VALIANT_URL"}


class Block(NamedTuple):
    """A fenced block of a page, with the line it begins at, and the mark above it if it has one."""

    page: str
    line: int
    language: str
    text: str
    mark: tuple[str, str] | None

    @property
    def commands(self):
        """Lines to type; in a session, those behind `$ ` where there are any."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console" and self.text.startswith("$ "):
            return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return lines


@cache
def _tokens(path):
    return MarkdownIt("commonmark").enable("table").parse(path.read_text())


def blocks(path):
    """The fenced blocks of a page, in order."""
    return [
        Block(path.stem, token.map[0] + 1, token.info, token.content, _mark(before))
        for before, token in zip([None, *_tokens(path)], _tokens(path), strict=False)
        if token.type == "fence"
    ]


def _mark(token):
    match = MARK.fullmatch(token.content) if token is not None and token.type == "html_block" else None
    return match.groups() if match else None


def prose_code(path):
    """Code between backticks in the prose and the tables of a page."""
    children = [child for token in _tokens(path) for child in token.children or ()]
    return [child.content for child in children if child.type == "code_inline"]


def named_commands(text):
    """Commands and requests between backticks in a program or a configuration."""
    programs = "|".join(("valiant", "docker", "kubectl", "helm", "pip", "python -m", "nginx", *METHODS))
    return re.findall(rf"`((?:\w+=\S+ )*(?:(?:{programs}) |python tests/)[^`]+)`", _joined(text))


def bare_commands(text):
    """Commands of `valiant`, Docker and Kubernetes that do not stand between backticks."""
    bare = re.compile(rf"(?<!from )\bvaliant (?:{'|'.join(subcommands())})\b|\b(?:docker compose|kubectl) \w+")
    return bare.findall(re.sub(r"`[^`]{1,500}`", "", _joined(text))) if bare.search(text) else []


def _joined(text):
    """A program or a configuration whose strings and comments do not end with the line."""
    return re.sub(r"\\?\n\s*#?\s*", " ", re.sub(r'"\s*\n\s*f?"', "", text))


@cache
def _parser():
    """The parser of all commands, for which the files of a reader exist."""
    with patch.object(commands, "_existing", str):
        return cli._parser([])


@cache
def subcommands():
    return tuple(next(action.choices for action in _parser()._actions if action.choices))


@cache
def _configuration(name):
    return yaml.safe_load((ROOT / name).read_text())


def script_faults(text):
    """What is wrong with a script of the shell: its syntax, then each command in it."""
    parsed = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True, check=False)
    return [parsed.stderr] if parsed.returncode else _faults(text)


@cache
def code_faults(code):
    """What is wrong with code in prose, if it is a command, a request, an address or a name of the client."""
    method, _, address = code.partition(" ")
    if method in METHODS:
        return request_faults(method, address.split(" ")[0])
    if re.match(r"/(v1|v2|livez|readyz|metrics)\b", code):
        return [] if is_address(code) else [f"no {code}"]
    if match := re.match(r"valiant((?:\.\w+)+)", code):
        return _missing_names(match[1].split(".")[1:])
    if match := re.match(r"([vmd])\.(\w+)", code):
        return [] if any(match[2] in _names(kind) for kind in CLIENT[match[1]]) else [f"no {match[2]}"]
    program = re.match(r"(?:\w+=\S+ )*([\w./-]+) ", code)
    return _faults(code) if program and Path(program[1]).name in CHECKS else []


def _names(kind):
    """Attributes of a class and of its instances."""
    return {*dir(kind), *(name for base in kind.__mro__ for name in inspect.get_annotations(base))}


def _missing_names(names):
    """What of the names does not exist in the client; its modules are not looked into, as importing them takes long."""
    value = valiant
    for name in names:
        if value is valiant and find_spec(f"valiant.{name}") is not None:
            return []
        if not hasattr(value, name):
            return [f"no {name} in {value}"]
        value = getattr(value, name)
    return []


def _faults(text):
    return [fault for words in _simple_commands(text) for fault in command_faults(words)]


def _simple_commands(text):
    lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    command, words = [], iter([*lexer, ";"])
    for word in words:
        if word == ">":
            next(words)
        elif not SEPARATORS.fullmatch(word):
            command.append(word)
        elif command:
            yield command
            command = []


def command_faults(words):
    """What is wrong with a command, given as its words."""
    words = list(words)
    while words and (words[0] in {"do", "then"} or re.match(r"[A-Za-z_]+=", words[0])):
        words.pop(0)
    if not words:
        return []
    program = Path(words[0]).name
    if program in CHECKS:
        return CHECKS[program](words[1:])
    return [] if program in PLAIN else [f"no check of {program!r}"]


def _valiant_faults(arguments):
    if arguments[0].startswith("<"):
        return []
    if "|" in arguments[0]:
        return [fault for each in arguments[0].split("|") for fault in _valiant_faults([each, *arguments[1:]])]
    typed = [re.sub(r"\$?\{[^}]*\}", "1", word).strip("[]") for word in arguments]
    printed = StringIO()
    try:
        with redirect_stderr(printed), redirect_stdout(printed):
            _parser().parse_args(typed)
    except SystemExit as end:
        is_name = NAME_ALONE.fullmatch(" ".join(typed)) and "arguments are required" in printed.getvalue()
        return [printed.getvalue()] if end.code and not is_name else []
    return []


def _docker_faults(arguments):
    if arguments[0] != "compose":
        return [] if arguments[0] in {"build", "stop", "rm"} else [f"no check of docker {arguments[0]}"]
    words = arguments[1:]
    while words[0] == "--profile":
        words = words[2:]
    command, *words = words
    services = _configuration("docker-compose.yml")["services"]
    operands = [word for word in words if not word.startswith("-") and not re.fullmatch(r"\w+=\d+", word)]
    if command not in {"run", "exec"}:
        return [f"no service {word!r}" for word in operands if word not in services]
    service = operands[0]
    if service not in services:
        return [f"no service {service!r}"]
    typed = words[words.index(service) + 1 :]
    return _valiant_faults(typed) if typed and services[service]["image"] == "valiant" else []


def _kubectl_faults(arguments):
    manifest = _configuration("app/deployment/kubernetes.yaml")
    objects = {f"{item['kind'].lower()}/{item['metadata']['name']}" for item in manifest["items"]}
    command, *words = arguments
    if command == "exec":
        faults = [] if words[0].replace("deploy/", "deployment/") in objects else [f"no {words[0]}"]
        inside = words[words.index("--") + 1 :]
        return faults + command_faults(inside)
    if command == "delete":
        return [] if "/".join(words[:2]) in objects else [f"no {words[:2]}"]
    return [] if command in {"apply", "create"} else [f"no check of kubectl {command}"]


def _helm_faults(arguments):
    """A chart, or files of values, that do not exist."""
    command, *words = arguments
    if command not in {"install", "upgrade", "rollback"}:
        return [f"no check of helm {command}"]
    paths = [word for word in words if "/" in word and "=" not in word]
    return [f"no {path}" for path in paths if not (ROOT / path).exists()]


def _pip_faults(arguments):
    """Extras that the package does not have."""
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {extra for word in arguments for group in re.findall(r"\[(.*?)\]", word) for extra in group.split(",")}
    return [f"no extra {extra!r}" for extra in named - set(package["optional-dependencies"])]


def _python_faults(arguments):
    """Modules and files that do not exist, and options that they do not have."""
    if arguments[:2] == ["-m", "venv"] or arguments[0] in {"-c", "-"}:
        return []
    name = arguments[1].replace(".", "/") if arguments[0] == "-m" else arguments[0].removesuffix(".py")
    roots = (ROOT, ROOT / "app" / "client")
    files = [file for root in roots for file in (root / f"{name}.py", root / name / "__main__.py") if file.is_file()]
    if not files:
        return [f"no {name}"]
    source = files[0].read_text()
    return [f"{name} has no {word}" for word in arguments[1:] if word.startswith("--") and word not in source]


def _nginx_faults(arguments):
    return [] if arguments[::2] == ["-p", "-c"] else [f"no check of nginx {arguments}"]


def _curl_faults(arguments):
    """A request that the API does not have."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("addresses", nargs="*")
    parser.add_argument("-X", "--request")
    for option in (("-d", "--data"), ("--data-binary",), ("-F",), ("-T",)):
        parser.add_argument(*option, dest="body")
    for option in ("-H", "-o"):
        parser.add_argument(option, action="append")
    parser.add_argument("-sS", "-sSN", action="store_true", dest="quiet")
    try:
        parsed = parser.parse_args(arguments)
    except argparse.ArgumentError as error:
        return [str(error)]
    method = parsed.request or ("GET" if parsed.body is None else "POST")
    addresses = [urlsplit(each)._replace(scheme="", netloc="").geturl() for each in parsed.addresses]
    return [fault for address in addresses for fault in request_faults(method, address)]


CHECKS = {
    "valiant": _valiant_faults, "docker": _docker_faults, "kubectl": _kubectl_faults, "pip": _pip_faults,
    "python": _python_faults, "python3": _python_faults, "curl": _curl_faults, "nginx": _nginx_faults,
    "helm": _helm_faults,
}  # fmt: skip
"""What checks the arguments of a program."""


def request_faults(method, address):
    """What is wrong with a method and an address, in which `{model}`, `<name>` and `…` stand for any part."""
    path, _, query = address.rstrip(".,").partition("?")
    operations = [item[method.lower()] for item in _items(path) if method.lower() in item]
    if not operations:
        return [f"no {method} {path}"]
    parameters = {each["name"] for operation in operations for each in operation.get("parameters", ())}
    return [f"{path} has no {name}" for name, _ in parse_qsl(query, keep_blank_values=True) if name not in parameters]


def is_address(path):
    """Whether any operation has such a path."""
    return bool(_items(path.partition("?")[0]))


def _items(path):
    """Operations of the paths that are as this one, part by part; `…/` stands for the parts that come before."""
    parts = _parts(path)
    tail = parts[1:] if parts[0] == "…" else parts
    return [
        item
        for other, item in _operations()
        if len(other) == len(parts) or (tail is not parts and len(other) > len(tail))
        if all(map(_are_alike, reversed(tail), reversed(other)))
    ]


def _are_alike(part, other):
    return part == other or any(PLACEHOLDER.fullmatch(each) for each in (part, other))


def _parts(path):
    return re.split(r"[/:]", path)


@cache
def _operations():
    """Parts of each path of the API, and its operations; those of `valiant serve` have no described parameters."""
    paths = {path: dict(item) for path, item in openapi_document()["paths"].items()}
    for router in (folder_routes.kserve, folder_routes.repository):
        for route in router.routes:
            paths.setdefault(route.path, {}).update({method.lower(): {} for method in route.methods})
    return [(_parts(path), item) for path, item in paths.items()]

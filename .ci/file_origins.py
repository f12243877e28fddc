"""A CycloneDX bill of materials of an environment that names the origin of every file in it.

`python .ci/file_origins.py ENVIRONMENT OUT.json`: each installed distribution is a component, with its licence and
its files, with the hashes that it states; what `valiant warm` compiled and what the interpreter put there are
components of their own. Where files have no origin, it names them and ends with code 1.
"""

import base64
import hashlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, NamedTuple

INTERPRETER, KERNELS, BYTECODE = "interpreter", "kernels compiled by `valiant warm`", ".pyc"
SCRIPTS = {"activate", "activate.csh", "activate.fish", "Activate.ps1", "pyvenv.cfg"}
"""What `python -m venv` writes, besides links to the interpreter."""


def list_files(environment: Path) -> Iterator[Path]:
    """Files and links, but those of links to folders."""
    for path in sorted(environment.rglob("*")):
        if path.is_symlink() or path.is_file():
            yield path


class Owner(NamedTuple):
    """Name and version of the distribution whose RECORD has a file, and the hash there (SHA-256, hexadecimal)."""

    name: str
    digest: str | None


def read_owners(environment: Path) -> dict[str, Owner]:
    """Path of a file → its owner."""
    owners = {}
    for installed in distributions(path=[str(_packages(environment))]):
        name = _name(installed)
        for file in installed.files or ():
            stated = file.hash.value if file.hash and file.hash.mode == "sha256" else None
            digest = base64.urlsafe_b64decode(f"{stated}==").hex() if stated else None
            owners[os.path.normpath(str(installed.locate_file(file)))] = Owner(name, digest)
    return owners


def find_origin(path: Path, environment: Path, owners: Mapping[str, Owner]) -> Owner | None:
    """Where a file comes from; None if nothing states it."""
    if owner := owners.get(str(path)):
        return owner
    if path.is_symlink() or path.name in SCRIPTS or (path.parent.name == "bin" and path.name.startswith("python")):
        return Owner(INTERPRETER, None)
    if path.suffix == BYTECODE:  # of a source beside it
        source = owners.get(str(path.parent.parent / f"{path.name.split('.')[0]}.py"))
        return source and Owner(source.name, None)
    return Owner(KERNELS, None) if "kernels" in path.relative_to(environment).parts else None


def bill(environment: Path) -> tuple[dict[str, Any], list[Path]]:
    """The bill, and files of no origin."""
    owners, files, lost = read_owners(environment), defaultdict(list), []
    for path in list_files(environment):
        origin = find_origin(path, environment, owners)
        if origin is None:
            lost.append(path)
        elif path.is_file():
            files[origin.name].append((path, origin.digest))
    installed = distributions(path=[str(_packages(environment))])
    components = [_component(each, files[_name(each)], environment) for each in installed]
    for origin in (INTERPRETER, KERNELS):
        if files[origin]:
            inner = _file_components(files[origin], environment)
            components.append({"type": "application", "bom-ref": origin, "name": origin, "components": inner})
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": sorted(components, key=lambda component: component["bom-ref"]),
    }
    return document, lost


def _packages(environment: Path) -> Path:
    (packages,) = environment.glob("lib/python*/site-packages")
    return packages


def _name(installed: Distribution) -> str:
    return f"{installed.metadata['Name'].lower().replace('_', '-')}=={installed.version}"


def _component(installed: Distribution, files: list[tuple[Path, str | None]], environment: Path) -> dict[str, Any]:
    name, version = _name(installed).split("==")
    expression = installed.metadata.get("License-Expression")
    licences = {"licenses": [{"expression": expression}]} if expression else {}
    return {
        "type": "library",
        "bom-ref": f"{name}=={version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        **licences,
        "components": _file_components(files, environment),
    }


def _file_components(files: list[tuple[Path, str | None]], environment: Path) -> list[dict[str, Any]]:
    return [
        {
            "type": "file",
            "name": str(path.relative_to(environment)),
            "hashes": [{"alg": "SHA-256", "content": digest or _hash(path)}],
        }
        for path, digest in files
    ]


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(arguments: list[str]) -> int:
    environment, out = map(Path, arguments)
    document, lost = bill(environment.absolute())
    out.write_text(json.dumps(document, indent=1, sort_keys=True))
    for path in lost:
        print(f"{path} has no origin", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

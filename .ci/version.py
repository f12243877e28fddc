"""The version of a release: it is set in pyproject.toml, and this writes it wherever else it has to stand.

`python .ci/version.py` prints it, and ends with code 1 where a file has another; with a version it sets all.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = {
    "pyproject.toml": r'^version = "(.+)"$',
    "app/client/pyproject.toml": r'^version = "(.+)"$',
    "app/client/valiant/release.py": r'^RELEASE = "(.+)"$',
    "app/deployment/chart/Chart.yaml": r"^(?:appV|v)ersion: (.+)$",
    "app/deployment/kubernetes.yaml": r"image: &image valiant:(.+)$",
}
VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


def read_versions(root: Path = ROOT) -> dict[str, set[str]]:
    """File → versions in it."""
    return {file: set(re.findall(pattern, (root / file).read_text(), re.MULTILINE)) for file, pattern in PLACES.items()}


def set_version(version: str, root: Path = ROOT) -> None:
    """Write it everywhere. Raises ValueError."""
    if not VERSION.fullmatch(version):
        raise ValueError(f"{version} is no version such as 1.2.0 or 1.2.0rc1.")
    for file, pattern in PLACES.items():
        text = (root / file).read_text()
        text = re.sub(pattern, lambda match: match[0].replace(match[1], version), text, flags=re.MULTILINE)
        (root / file).write_text(text)


def main(arguments: list[str]) -> int:
    if arguments:
        set_version(arguments[0])
    versions = read_versions()
    (version,) = versions["pyproject.toml"]
    print(version)
    others = [file for file, found in versions.items() if found != {version}]
    if others:
        print(f"{', '.join(others)} have another version: `python .ci/version.py {version}`", file=sys.stderr)
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

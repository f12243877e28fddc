"""NOTICE names what comes under licences with conditions on its source, and what is copied into the package."""

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.test_lock import SUPPORTED, pinned

ROOT = Path(__file__).parents[1]
NOTICE = (ROOT / "NOTICE").read_text()
COPYLEFT = re.compile(r"\b[AL]?GPL|\bMPL|Mozilla Public|General Public|\bE[PU]+L\b|\bCDDL|\bCC-BY-SA", re.IGNORECASE)
LIBRARIES = {"libgfortran", "libquadmath", "libgomp", "libkeyutils", "libcrypt"}
"""Under the GPL or LGPL."""
HERE = {canonicalize_name(name) for environment in SUPPORTED for name in pinned(environment)}
ELSEWHERE = {"async-timeout", "tzdata"}
"""Pinned for other versions of Python and other systems than the one that runs the tests."""


def licence(name):
    fields = distribution(name).metadata
    texts = [fields.get("License-Expression") or "", *(fields.get_all("Classifier") or [])]
    short = fields.get("License") or ""
    return "\n".join(
        [short if len(short) < 100 else "", *(text for text in texts if "::" not in text or "License" in text)]
    )


def names(section):
    """The words that begin a line of NOTICE: packages."""
    return set(re.findall(r"^  ([a-z-]+(?:, [a-z-]+)*) {2,}\S", section, re.MULTILINE))


@pytest.mark.parametrize("name", sorted(HERE - ELSEWHERE))
def test_a_package_with_conditions_on_its_source_is_named_and_no_other(name):
    section = NOTICE.partition("conditions on their own source")[2].partition("Libraries within")[0]
    assert (name in names(section)) == bool(COPYLEFT.search(licence(name))), licence(name)


def test_libraries_within_packages_are_named():
    for name in HERE - ELSEWHERE:
        files = distribution(name).files or ()
        for file in files:
            library = re.match(r"lib[a-z]+", file.name)
            if ".libs" in file.parts[0] and library and library[0] in LIBRARIES:
                line = next(
                    line for line in NOTICE.splitlines() if re.search(rf"^  (.*, )?{name}\b", line) and "lib" in line
                )
                assert library[0] in line, (name, file)


def test_what_is_copied_is_named_with_its_licence_beside_it():
    for folder in ("app/console/vendor", "app/docs/swagger_ui"):
        copied = re.findall(r"^([a-z-]+) [0-9.]+ sha512-", (ROOT / folder / "integrity.txt").read_text(), re.MULTILINE)
        section = NOTICE.partition(folder)[2].partition("\n\n")[0]
        assert set(copied) == names(section)
        assert list((ROOT / folder).glob("LICENSE*"))

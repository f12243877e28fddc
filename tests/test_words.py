"""Avoided words: no file holds one, as an identifier, in a comment or in a sentence."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""A part of an identifier, or a word of a sentence."""
AVOIDED = {
    *("told", "asked", "said", "heard", "answer", "answers", "answered", "question", "questions", "lot", "lots"),
    *("piece", "pieces", "taught", "judge", "judges", "judged", "strangers", "voices", "orchard", "grove"),
    *("figure", "figures"),
}
"""Words of a private dialect: the field has a term for each."""
PROPER = re.compile(r"figure[ _]\d|first_answer")
"""A figure of a book; a column of databases that releases before this one write too."""
LISTS = {"tests/ml/test_parameters.py", "tests/test_language.py", "tests/test_words.py"}
"""Files that list the words."""


def words(path: str) -> set[str]:
    return {word.lower() for word in WORD.findall(PROPER.sub("", (ROOT / path).read_text()))}


def files() -> list[str]:
    rooms = [path for room in ("app", "workers", "migrations", "tests") for path in (ROOT / room).rglob("*")]
    found = {str(path.relative_to(ROOT)) for path in rooms if path.suffix in {".py", ".md"}}
    return sorted({*found, "README.md"} - LISTS)


def folder(path: str) -> str:
    """The folder of the file; the file itself where it stands at the top."""
    return path.rpartition("/")[0] or path


@pytest.mark.parametrize("place", sorted({folder(path) for path in files()}))
def test_no_avoided_word(place):
    held = {path: found for path in files() if folder(path) == place if (found := words(path) & AVOIDED)}
    assert held == {}

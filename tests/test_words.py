"""Avoided words: no file of a clean folder holds one, as an identifier, in a comment or in a sentence."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""A part of an identifier, or a word of a sentence."""
AVOIDED = {
    *("told", "asked", "said", "heard", "answer", "answers", "answered", "question", "questions", "lot", "lots"),
    *("piece", "pieces", "taught", "judges", "judged", "strangers", "voices", "orchard", "grove", "figure", "figures"),
}
"""Words of a private dialect: the field has a term for each."""
LEFT = {
    "app/docs": "judged",
    "app/store": "answer",
    "migrations/versions": "answer",
    "tests": "answer answered answers asked figures judges said told",
    "tests/api": "answer answered answers asked judged judges question said told",
    "tests/api/edge": "answered answers heard told",
    "tests/api/fast": "answer answered answers piece pieces question questions said",
    "tests/api/params": "answer said",
    "tests/api/routes": "answer answered answers asked figure figures pieces questions said told",
    "tests/benchmarks": "answer answers asked judged pieces question said told",
    "tests/benchmarks/quality": "judged",
    "tests/benchmarks/serving": "answer answered answers asked figures said",
    "tests/formats": "answer answered answers pieces",
    "tests/ingest": "answer judged piece said",
    "tests/ml": "answer answered answers judged question said",
    "tests/ml/algorithms": "figure",
    "tests/ml/contract": "answer answered answers",
    "tests/ml/evaluation": "answer answers figures said told",
    "tests/ml/jobs": "answered answers asked judged",
    "tests/ml/models": "answered said told",
    "tests/ml/preparation": "asked said told",
    "tests/ml/statistics": "answer answers asked figure figures said told",
    "tests/ml/tables": "figures pieces said",
    "tests/ml/training": "answer answers asked figures judged judges lots said taught told",
    "tests/services": "answer answers asked heard piece question told",
    "tests/services/jobs": "heard told",
    "tests/store": "answered answers asked judged pieces said",
    "tests/workers": "answer answers asked heard judged pieces said told",
    "tests/workers/poison/algorithms": "told",
}
"""Words that a folder still holds; a folder that is not listed is clean, and a word never comes back."""
EXCEPTIONS = {
    "tests/test_language.py",
    "tests/test_words.py",
}
"""They list the words."""


def words(path: str) -> Counter[str]:
    return Counter(word.lower() for word in WORD.findall((ROOT / path).read_text())) & Counter(
        dict.fromkeys(AVOIDED, 9)
    )


def files() -> list[str]:
    rooms = [path for room in ("app", "workers", "migrations", "tests") for path in (ROOT / room).rglob("*")]
    found = {str(path.relative_to(ROOT)) for path in rooms if path.suffix in {".py", ".md"}}
    return sorted({*found, "README.md"} - EXCEPTIONS)


def folder(path: str) -> str:
    """The folder of the file; the file itself where it stands at the top."""
    return path.rpartition("/")[0] or path


FOLDERS = sorted({folder(path) for path in files()})


@pytest.mark.parametrize("place", FOLDERS)
def test_no_avoided_word(place):
    allowed = set(LEFT.get(place, "").split())
    held = {path: found for path in files() if folder(path) == place if (found := words(path).keys() - allowed)}
    assert held == {}


def test_the_list_of_what_is_left_names_folders_that_exist():
    assert LEFT.keys() <= set(FOLDERS)

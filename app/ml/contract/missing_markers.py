"""Markers of a missing value in text: words and signs that stand for no value."""

MISSING = [
    "", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-NaN", "-nan",
    "null", "NULL", "Null", "None", "none", "nil", "?",
]  # fmt: skip
"""Markers of a missing value among numbers, dates and truth values; among words only the empty cell is one."""
MARKERS = frozenset({
    "-", "--", "---", ".", "..", "*", "\u2013", "\u2014", "unknown", "not known", "missing", "not available", "n.a.",
    "n.b.", "n. b.", "k.a.", "k. a.", "keine angabe", "unbekannt", "n/d", "nd", "tbd", "#div/0!", "#value!", "#ref!",
    "#name?", "#num!", "#null!",
})  # fmt: skip
"""Further markers, in small letters, of a missing value among numbers or dates, if a few cells hold them."""


def is_marker(word: str) -> bool:
    """True for a word that stands for no value elsewhere, though it may be a category."""
    return bool(word) and (word in MISSING or word.lower() in MARKERS)

"""Markers of a missing value in text: words and signs that stand for no value, in every column or among numbers."""

MISSING = [
    "", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-NaN", "-nan",
    "null", "NULL", "Null", "None", "none", "nil", "?",
]  # fmt: skip
"""Markers of a missing value in every column."""
MARKERS = frozenset({
    "-", "--", "---", ".", "..", "*", "\u2013", "\u2014", "unknown", "not known", "missing", "not available", "n.a.",
    "n.b.", "n. b.", "k.a.", "k. a.", "keine angabe", "unbekannt", "n/d", "nd", "tbd", "#div/0!", "#value!", "#ref!",
    "#name?", "#num!", "#null!",
})  # fmt: skip
"""Markers, in small letters, of a missing value among numbers or dates; among categories they are words."""

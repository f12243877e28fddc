"""Numbers as labels of charts."""

import math


def short(value: float) -> str:
    """Four significant digits, without an exponent for common sizes.

    >>> [short(x) for x in (2.4500000001, 120.0, -0.0, -0.000123456, 12345678.0)]
    ['2.45', '120', '0', '−0.0001235', '1.235e+07']
    """
    if not math.isfinite(value):
        return str(value)
    whole = value == round(value) and abs(value) < 1e6
    return (f"{value + 0.0:.0f}" if whole else f"{value:.4g}").replace("-", "\u2212")


def counted(shown: int, total: int, thing: str) -> str:
    """Number of things in a picture, of those that there are.

    >>> counted(20, 30, "column"), counted(1, 1, "column")
    ('20 largest of 30 columns', '1 column')
    """
    things = thing if total == 1 else f"{thing}s"
    return f"{total} {things}" if shown == total else f"{shown} largest of {total} {things}"

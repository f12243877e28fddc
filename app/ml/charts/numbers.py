"""Numbers as labels of charts."""

import math

MOST_DECIMALS, LARGEST_PLAIN = 6, 1e6
"""Digits behind the point, and the number, from which an exponent is easier to read."""


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


def tick_format(low: float, high: float) -> str:
    """Format of the ends of a scale in the notation of D3: two digits of their difference, at least.

    >>> [tick_format(*ends) for ends in ((4.3, 7.9), (0.02, 0.05), (101.0, 346.0), (0.0, 3e9), (5.0, 5.0))]
    ['.1~f', '.3~f', '.0f', '.3~e', '.3~g']
    """
    gap = high / 2 - low / 2
    if not 0 < gap < math.inf:
        return ".3~g"
    decimals = 1 - math.floor(math.log10(gap) + math.log10(2))
    if decimals > MOST_DECIMALS or max(abs(low), abs(high)) >= LARGEST_PLAIN:
        return ".3~e"
    return f".{decimals}~f" if decimals > 0 else ".0f"

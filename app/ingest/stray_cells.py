"""Stray cells: words in a column of numbers or dates, few enough to be read as missing."""

FITTING_CELLS_PER_STRAY = 100
"""One stray in so many cells is read as missing; one is, however few the
cells beside `MIN_FITTING_CELLS_PER_STRAY`.
"""
MIN_FITTING_CELLS_PER_STRAY = 10
"""Cells that fit, at least, for each stray."""


def few(strays: int, fit: int) -> bool:
    """True if so many strays are read as missing, beside so many cells that fit."""
    return strays <= max(1, fit // FITTING_CELLS_PER_STRAY) and fit >= MIN_FITTING_CELLS_PER_STRAY * strays

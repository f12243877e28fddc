"""A quick look at the quotes of a CSV file, a block of bytes at a time."""

import numpy as np

_QUOTE = b'"'


class QuoteCheck:
    """The quotes of a file, some of which may seem to be stray.

    Letters are then in front of one that should open a cell, or behind one that should close it.
    """

    def __init__(self, delimiter: str) -> None:
        self.any = self.stray = False
        self._inside = 0  # 1 behind a quote that opens a cell
        self._last = b"\n"  # the end of the block before, from the byte in front of a quote that has not been looked at
        self._is_border = np.zeros(256, np.bool_)
        self._is_border[np.frombuffer(f'{delimiter}\r\n"'.encode(), np.uint8)] = True

    def add(self, data: bytes) -> None:
        """The next block."""
        joined = self._last + data
        self._last = joined[-2:] if joined.endswith(_QUOTE) else joined[-1:]
        if self.stray or _QUOTE not in joined[1:]:
            return
        self.any = True
        letters = np.frombuffer(joined, np.uint8)
        places = 1 + np.flatnonzero(letters[1:-1] == ord(_QUOTE))
        opening, closing = places[self._inside :: 2], places[1 - self._inside :: 2]
        borders = self._is_border[letters[opening - 1]], self._is_border[letters[closing + 1]]
        self.stray = not all(each.all() for each in borders)
        self._inside = (self._inside + len(places)) % 2

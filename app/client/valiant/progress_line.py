"""Progress of a job as one line of a terminal, drawn over itself."""

import os
import sys
import time
from typing import TextIO

CELLS = 24


class ProgressLine:
    """Draws on a terminal, and nothing elsewhere, unless `shown` is given."""

    def __init__(self, title: str, *, shown: bool | None = None, stream: TextIO | None = None) -> None:
        self.title = title
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty() if shown is None else shown
        self._begun = time.monotonic()

    def draw(self, share: float, message: str) -> None:
        """share: from 0 to 1."""
        if not self._shown:
            return
        full = round(CELLS * share)
        seconds = int(time.monotonic() - self._begun)
        clock = f"{seconds // 60}:{seconds % 60:02}"
        line = f"{self.title} [{'#' * full}{'.' * (CELLS - full)}] {share:4.0%} {clock} {message}"
        width = (os.get_terminal_size(self._stream.fileno()).columns if self._stream.isatty() else 80) - 1
        self._stream.write(f"\r{line[:width]:<{width}}")
        self._stream.flush()

    def end(self) -> None:
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()

"""Parses each order of stdin in a fork of this small process, under its limits, and prints what became of it.

A fork of the process of the tests would copy the tables of all its pages, for every file.
"""

import os
import sys
from pathlib import Path

from app.base.errors import ValiantError
from app.ingest import parsing_child
from app.ingest.protocol import Order
from app.processes.process_memory import without_optional

READ, REFUSED, UNNAMED = 0, 1, 2


def main():
    without_optional()  # as the parser itself
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        sys.stdout.write(f"{_outcome(Order.model_validate_json(line), folder)}\n")
        sys.stdout.flush()


def _outcome(order, folder):
    """READ, REFUSED, UNNAMED, or minus the signal that ended it."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        parsing_child._limit(order)
        with (folder / "upload").open("rb") as upload, (folder / "chunks").open("w+b") as chunks:
            parsing_child.parse(order, upload.fileno(), chunks)
        os._exit(READ)
    except (ValiantError, MemoryError):
        os._exit(REFUSED)
    finally:
        os._exit(UNNAMED)


if __name__ == "__main__":
    main()

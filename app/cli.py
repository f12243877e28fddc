"""The console command `valiant`: up, demo, api, worker, migrate."""

import argparse
import sys
from collections.abc import Sequence

from app.settings import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="valiant")
    parser.add_argument("command", choices=["api", "worker", "migrate"])
    command = parser.parse_args(arguments).command
    settings = Settings()
    if command == "worker":
        from workers.main import main as work

        return work(settings) or 0
    return 0


if __name__ == "__main__":
    sys.exit(main())

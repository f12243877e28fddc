"""A child process of the service's own code, reached over one socket, without addresses and credentials."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import IO, NamedTuple

_PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "HOME")


class SocketChild(NamedTuple):
    """The process, a group of its own, and our end of its socket."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    errors: IO[bytes] | None = None
    """File of what it writes to stderr, if that is kept."""

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """At once, with every process that it forked."""
        self.channel.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.errors is not None:
            self.errors.close()


def bare(**environment: str) -> dict[str, str]:
    """The environment of a child: none of the service's addresses and credentials, and these variables."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | environment


def start(module: str, errors: IO[bytes] | None = None, **environment: str) -> SocketChild:
    """Run a module as a program whose one argument is the descriptor of its end of the socket.

    errors: file for what it writes to stderr.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(  # noqa: S603  our own module, and a number
            [sys.executable, "-m", module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=bare(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors or subprocess.DEVNULL,
            process_group=0,
        )
    return SocketChild(process, ours, errors)

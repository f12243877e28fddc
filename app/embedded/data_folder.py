"""The data folder: who may use it, who owns what in it, and where its sockets are.

var/valiant.lock   held while a stack runs on this folder
var/postgres/      the database cluster
var/broker/ cache/ working folders of the two Redis
var/log/           the output of each of them
var/run/           sockets; working folder of the API and the workers
"""

import fcntl
import hashlib
import os
import pwd
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from app.base.errors import StartFailed

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
LONGEST_SOCKET = 107  # bytes in sockaddr_un, without the closing NUL (103 on macOS)
LONGEST_NAME = len("/.s.PGSQL.5432")


class Account(NamedTuple):
    """Whom the servers run as when we are root, which Postgres refuses to be."""

    uid: int
    gid: int


class Folder:
    """One data folder, locked from entering to leaving."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.log = self.root / "log"
        self.run = self.root / "run"
        self.sockets = self.run if _fits(self.run) else _short(self.root)
        self.account = _account(self.root / "postgres")

    def __enter__(self) -> Self:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.root / "valiant.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StartFailed(f"The data folder {self.root} cannot be used: {error.strerror}.") from error
        self._acquire()
        self.log.mkdir(exist_ok=True)
        self.own(self.run)
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self.sockets != self.run:
            shutil.rmtree(self.sockets, ignore_errors=True)
        os.close(self._lock)

    def _acquire(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._lock, 20).decode().strip() or "unknown"
            os.close(self._lock)
            raise StartFailed(
                f"The data folder {self.root} is in use by another valiant (process {holder}). "
                "Stop that one first, or choose another folder with --data."
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def own(self, path: Path) -> Path:
        """Make a folder that only the servers (and root) may enter."""
        path.mkdir(mode=0o700, exist_ok=True)
        if self.account and path.stat().st_uid != self.account.uid:
            os.chown(path, *self.account)
        return path

    def clear_sockets(self) -> None:
        """Remove the sockets of a crashed start: with a reused pid they would block Postgres."""
        self.own(self.sockets)
        status = self.sockets.lstat()
        if status.st_uid not in {os.geteuid(), self.account.uid if self.account else os.geteuid()}:
            raise StartFailed(f"{self.sockets} belongs to somebody else. Remove it, or choose a shorter --data.")
        for path in self.sockets.glob(".s.PGSQL.*"):
            path.unlink()

    def capability(self, program: Path) -> int | None:
        """The capability that the servers' account needs to reach `program` and this folder; None where plain
        permissions do.

        Changing the permissions of /root, for instance, would be worse than lending the one right to look inside.
        """
        program = program.resolve()
        passable = all(path.stat().st_mode & 0o001 for path in {*self.root.parents, self.root, *program.parents})
        runnable = program.stat().st_mode & 0o005 == 0o005
        if self.account is None or (passable and runnable):
            return None
        held = _effective_capabilities()
        for candidate in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE) if runnable else (CAP_DAC_OVERRIDE,):
            if held >> candidate & 1:
                return candidate
        raise StartFailed(
            f"Postgres does not run as root, and the user it would run as may not enter {self.root} or "
            f"{program.parent}. Start valiant as an ordinary user, or move both to where all users may look."
        )


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) + LONGEST_NAME <= LONGEST_SOCKET - 4


def _short(root: Path) -> Path:
    """A folder with a short name for the sockets of a data folder with a long one."""
    key = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"valiant-{os.geteuid()}-{key}"


def _account(cluster: Path) -> Account | None:
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (status := cluster.stat()).st_uid != 0:
        return Account(status.st_uid, status.st_gid)
    try:
        nobody = pwd.getpwnam("nobody")  # initdb wants a user with a name
    except KeyError:
        raise StartFailed("Postgres does not run as root, and there is no user nobody. Be an ordinary user.") from None
    return Account(nobody.pw_uid, nobody.pw_gid)


def _effective_capabilities() -> int:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))

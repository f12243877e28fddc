"""Room on a disk: measured, kept in reserve, and refused where there is too little."""

import os
from contextlib import suppress
from pathlib import Path

from app.base.errors import StorageFull
from app.base.settings import MiB, Settings

CROWDED_BYTES = 64 * MiB


def free(folder: Path) -> int:
    """Bytes that an ordinary user may still write on the disk of `folder`, or of where it would be made."""
    disk = _disk(folder)
    return disk.f_bavail * disk.f_frsize


def size(folder: Path) -> int:
    """Size in bytes of the disk of `folder`, or of where it would be made."""
    disk = _disk(folder)
    return disk.f_blocks * disk.f_frsize


def crowded(folder: Path) -> bool:
    """True if a file that found no room and is gone by now would find none again."""
    disk = _disk(folder)
    return disk.f_bavail < min(CROWDED_BYTES // disk.f_frsize, disk.f_blocks // 2)


def _disk(folder: Path) -> os.statvfs_result:
    return os.statvfs(next(path for path in (folder, *folder.absolute().parents) if path.exists()))


def demand_room(settings: Settings) -> None:
    """Raises StorageFull where the embedded database, if there is one, would soon have no room."""
    if (settings.data / "postgres").exists() and free(settings.data) < settings.reserve_bytes:
        raise StorageFull(f"Less than {settings.reserve_bytes // MiB} MiB are free on the disk of the data folder.")


class Reserve:
    """A file without content that takes room from a disk, to be given back when the disk is full.

    The database then has room for its recovery and for the results of jobs that were accepted.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        self._file = folder / "reserve"

    @property
    def needed(self) -> int:
        """Bytes without which a start is in vain. A new database is about as large as the default reserve."""
        return self.size // 2 if (self.folder / "postgres").exists() else 3 * self.size

    @property
    def short(self) -> bool:
        return free(self.folder) < self.needed

    def release(self) -> bool:
        """Give the room back if the disk is short of it. False if there was nothing to do."""
        if not self.short or not self._file.exists():
            return False
        self._file.unlink()
        return True

    def restore(self) -> None:
        """Take the room again once there is twice as much."""
        if self.size and not self._file.exists() and free(self.folder) >= 2 * self.size:
            draft = self._file.with_suffix(".new")
            with suppress(OSError):  # not everybody's disk can set room aside, and the next time may be better
                with draft.open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, self.size)
                draft.rename(self._file)

"""Launcher: becomes another program, as another user if requested, and never outliving its parent.

Run as a plain script (`python -I -S launch_as_user.py '<json>' program argument…`), so that the few
system calls happen in a fresh single-threaded process instead of after a fork. The JSON holds
`parent` (its pid), `signal` (sent to us when the parent dies), `uid` and `gid` (absent: stay
who we are) and `capability` (kept across the change of user; absent: none).
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any

PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_SECUREBITS, PR_CAP_AMBIENT = 1, 8, 28, 47
PR_CAP_AMBIENT_RAISE = 2
SECBIT_NO_SETUID_FIXUP = 1 << 2
CAPABILITY_VERSION = 0x20080522


def call(name: str, *arguments: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def become(uid: int, gid: int, capability: int | None) -> None:
    """Drop root for good. With a capability, keep exactly that one.

    `access(2)` counts a capability of an ordinary user only under SECBIT_NO_SETUID_FIXUP, and
    Postgres looks for its own program with `access`.
    """
    if capability is not None:
        call("prctl", PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    keep = 0 if capability is None else 1 << capability
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    words = [keep & 0xFFFFFFFF] * 3 + [keep >> 32] * 3  # effective, permitted, inheritable; low then high
    call("capset", header, (ctypes.c_uint32 * 6)(*words))
    if capability is not None:
        call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)


def main() -> None:
    plan = json.loads(sys.argv[1])
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if "uid" in plan:
        os.umask(0o077)
        become(plan["uid"], plan["gid"], plan.get("capability"))
    if sys.platform == "linux":  # after the change of user, which clears it
        call("prctl", PR_SET_PDEATHSIG, plan["signal"], 0, 0, 0)
    if os.getppid() != plan["parent"]:
        sys.exit("the parent died first")
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main()

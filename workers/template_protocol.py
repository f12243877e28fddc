"""Requests of a worker to its template, and the responses."""

import struct

READY, START, ALIVE, KILL, END = b"R", b"S", b"A", b"K", b"E"
"""Respond with 0, once everything is imported. Fork a trainer, whose pipes come along: its process id, or minus the
error number. Whether it runs: RUNNING or 0. Kill it with its process group. The same, and reap it: how it ended, or
RUNNING if it has not ended yet."""
REQUEST, RESPONSE = struct.Struct("=ci"), struct.Struct("=i")
RUNNING = 1 << 16
"""No status that a process ends with."""

"""Lends a slot of the worker to a trainer that fits several members at once."""

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

import structlog

from workers.parallel_fits import TAKEN

log = structlog.get_logger(__name__)

RETURN_SECONDS = 0.1
"""Seconds between two looks of the lender whether there is still a use for the slot."""
TAKE_SECONDS = 5.0
"""A slot that nobody takes for so long is taken back."""


def lend_slot(grants: socket.socket, job_id: UUID, is_wanted: Callable[[], bool], over: threading.Event) -> bool:
    """True if the trainer at the other end of `grants` took the slot. Blocks until it is back, or the job is over."""
    ours, theirs = os.pipe()
    taken, until = False, time.monotonic() + TAKE_SECONDS
    with os.fdopen(ours, "rb", buffering=0) as slot:
        with os.fdopen(theirs, "wb"), suppress(OSError):  # the trainer is gone
            socket.send_fds(grants, [TAKEN], [theirs])
        while not over.is_set() and (taken or (is_wanted() and time.monotonic() < until)):
            if select.select([slot], [], [], RETURN_SECONDS)[0]:
                if not slot.read(1):
                    break  # closed, by whoever had it
                taken = True
                log.info("slot_lent", job_id=str(job_id))
    return taken

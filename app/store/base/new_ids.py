"""Identifiers that sort by the time they were made."""

import secrets
import time
from uuid import UUID


def uuid7() -> UUID:
    """A UUIDv7 (RFC 9562, 5.7): 48 bits of milliseconds, then randomness."""
    milliseconds = time.time_ns() // 1_000_000
    bits = milliseconds << 80 | secrets.randbits(80)
    bits = bits & ~(0xF << 76) | 0x7 << 76  # version 7
    bits = bits & ~(0x3 << 62) | 0x2 << 62  # variant of the RFC
    return UUID(int=bits)

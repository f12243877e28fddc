"""Trace contexts of callers (W3C Trace Context): passed on, never invented."""

import re

SOUND = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def sound(traceparent: str) -> str | None:
    """The value of a `traceparent` header itself, or None where it is malformed: such a one is ignored."""
    return traceparent if SOUND.fullmatch(traceparent) else None


def trace_id(traceparent: str) -> str:
    """The trace that a sound one names."""
    return traceparent[3:35]

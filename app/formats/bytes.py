"""Bytes of a whole body, as every reader takes them."""

Sent = bytes | memoryview
"""A whole body: one that came in chunks is a view of memory that nobody writes to any more."""

"""JSON as strict as the rest of the service: what other parsers let through is refused here, before pydantic.

orjson already refuses NaN, Infinity, 1e999, bytes that are not UTF-8, lone surrogates, trailing text, and
nesting that would overflow a stack. Left to do: integers it would round, keys it would
overwrite, NUL (which Postgres cannot store), our own depth, and to name the cause of what it refused.
"""

import re
from collections.abc import Iterator

import numpy as np
import orjson

from app.base.errors import (
    DuplicateKey,
    EmptyBody,
    InvalidEncoding,
    LoneSurrogate,
    MalformedJSON,
    NonFiniteNumber,
    NulCharacter,
    NumberOutOfRange,
    TooDeep,
)
from app.base.settings import KiB

# Possessive, and a string that never ends is a match too: no text makes these go over it twice.
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")
LONG_INTEGER = re.compile(rb"(?<![\d.eE+])(?<![eE]-)-?\d{19,}+(?![.eE])")
DIGITS_ALIKE, LONG_RUN = bytes.maketrans(b"123456789", b"000000000"), re.compile(b"0" * 19 + b"0*+")
"""Many digits in a row are found sooner than a long integer is: most belong to a fraction."""
MIN_BYTES_FOR_NUMPY = 4 * KiB
"""Bytes from which on numpy takes strings out sooner."""
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
REFUSED = (
    (re.compile(r"-?(?:nan|infinity)\b", re.IGNORECASE), NonFiniteNumber),
    (re.compile(r"\0"), NulCharacter),
    (re.compile(r"\\u[dD][89a-fA-F][\da-fA-F]{2}"), LoneSurrogate),
)
LONGEST_64_BIT = 20
STEP = np.zeros(256, np.int8)
STEP[list(b"[{")], STEP[list(b"]}")] = 1, -1


def parse(body: bytes, max_depth: int) -> object:
    """The value of a JSON text, nested no deeper than that. Raises the kind of MalformedJSON that names the cause."""
    if not body.strip():
        raise EmptyBody
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _cause(body, error) from None
    bare = _bare(body)
    if _depth(bare) > max_depth:
        raise TooDeep(f"At most {max_depth} levels are read.")
    if any(map(_beyond_64_bits, _long_integers(bare))):
        raise NumberOutOfRange
    if b"\\u0000" in body and ESCAPED_NUL.search(body):
        raise NulCharacter
    if _members(value, stop=bare.count(b":")) < bare.count(b":"):
        raise DuplicateKey
    return value


def _bare(body: bytes) -> bytes:
    """A JSON text without its strings."""
    if len(body) < MIN_BYTES_FOR_NUMPY or b"\\" in body:
        return STRING.sub(b"", body)
    text = np.frombuffer(body, np.uint8)
    quotes = text == ord('"')
    outside: bytes = text[~(quotes | np.logical_xor.accumulate(quotes))].tobytes()
    return outside


def _depth(bare: bytes) -> int:
    """Deepest nesting of a text whose strings were taken out."""
    brackets = np.frombuffer(bare.translate(None, NOT_BRACKETS), np.uint8)
    return int(STEP[brackets].cumsum(dtype=np.int32).max(initial=0))


def _long_integers(bare: bytes) -> Iterator[bytes]:
    """The integer that `LONG_INTEGER` finds."""
    for run in LONG_RUN.finditer(bare.translate(DIGITS_ALIKE)):
        start = run.start()
        match = LONG_INTEGER.match(bare, start - (bare[start - 1 : start] == b"-"))
        if match is not None:
            yield match[0]


def _beyond_64_bits(digits: bytes) -> bool:
    return len(digits) > LONGEST_64_BIT or not -(2**63) <= int(digits) < 2**64


def _members(value: object, *, stop: int) -> int:
    """Object members within `value`, counted level by level until there are `stop` of them.

    A text has one colon a member, so a smaller count means that keys were overwritten. Tables keep their
    members near the top: the cells are not looked at.
    """
    count, level = 0, [value]
    while level and count < stop:
        objects = [item for item in level if type(item) is dict]
        count += sum(map(len, objects))
        if count < stop:
            inner = [item for item in level if type(item) is list] + [item.values() for item in objects]
            level = [leaf for items in inner for leaf in items if type(leaf) in (dict, list)]
    return count


def _cause(body: bytes, error: orjson.JSONDecodeError) -> MalformedJSON:
    """Why orjson refused the text, from the place where it stopped: no second reading of a hostile text."""
    text, position = error.doc, error.pos
    if not text or text.startswith("\ufeff") or b"\0" in body[:2]:  # no text: it was not UTF-8
        return InvalidEncoding()
    if "depth limit" in error.msg:
        return TooDeep()
    if "infinity" in error.msg:
        return NumberOutOfRange()
    for pattern, refusal in REFUSED:
        if pattern.match(text, position):
            return refusal()
    return MalformedJSON(f"There is a mistake in line {error.lineno}, column {error.colno}.")

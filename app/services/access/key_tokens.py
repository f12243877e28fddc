"""Keys as callers send them: `vlt_`, 12 characters that name the key, `_`, 43 that are secret, and 6 of a checksum.

The checksum finds a mistyped or truncated key without the database, and lets scanners find keys that
were published by mistake. The secret has 256 bits, so a plain hash of it cannot be reversed, and needs no salt.
"""

import re
import secrets
import string
from hashlib import blake2b
from zlib import crc32

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
NAME_LENGTH, SECRET_LENGTH, CHECKSUM_LENGTH = 12, 43, 6
TOKEN = re.compile(rb"(vlt_[0-9A-Za-z]{12}_[0-9A-Za-z]{43})([0-9A-Za-z]{6})")
PREFIX_LENGTH = len("vlt_") + NAME_LENGTH
"""Characters that may be shown."""


def new_token() -> str:
    body = f"vlt_{_drawn(NAME_LENGTH)}_{_drawn(SECRET_LENGTH)}"
    return body + _checksum(body.encode())


def is_token(token: bytes) -> bool:
    """True if it has the form of a key, and its checksum."""
    match = TOKEN.fullmatch(token)
    return match is not None and match[2].decode() == _checksum(match[1])


def digest_of(token: bytes) -> bytes:
    """The hash of a key that is stored in its place."""
    return blake2b(token, digest_size=32, person=b"valiant-key-v1").digest()


def _drawn(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _checksum(body: bytes) -> str:
    """CRC-32 in base 62."""
    remainder, digits = crc32(body), ""
    for _ in range(CHECKSUM_LENGTH):
        remainder, digit = divmod(remainder, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits

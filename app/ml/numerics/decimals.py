"""Decimal to binary, for compiled readers: the float nearest to what digits in a text write.

After Lemire (2021), Number parsing at a gigabyte per second, Softw. Pract. Exper. 51:1700, and Mushtak & Lemire
(2023), Fast number parsing without fallback, ibid. 53:1467: w·10^q with w < 2^64 is the product of w and 128 bits of
5^q, rounded to the nearest float, half to even. Eight digits are read at a time (2021, sec. 3).
In the kernels all indices and words are unsigned: numba then neither wraps them nor makes them floats.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.numerics.compiled import Kernel, inner

Words = NDArray[np.uint64]
U = np.uint64

LEAST, MOST = -342, 308
"""Powers of ten beyond which every product of 64 bits is 0 or infinite."""


def _fives() -> Words:
    """High and low, the 128 bits of 5^q for each q, rounded down; for q < 0 those of the reciprocal, rounded up."""
    words: list[int] = []
    for q in range(LEAST, MOST + 1):
        five = 5 ** abs(q)
        size = (five - 1).bit_length()  # 2^size >= 5^-q
        bits = five << 128 if q >= 0 else 2 ** (size + 127 if q >= -27 else 2 * size + 128) // five + 1
        bits >>= bits.bit_length() - 128
        words += [bits >> 64, bits & (2**64 - 1)]
    return np.array(words, np.uint64)


FIVES = _fives()
TENS = 10.0 ** np.arange(23)
"""Exact."""
WHOLE = np.array([10**k for k in range(9)], np.uint64)


class _Load(Kernel[[bytes, Any], Any]):
    """The eight bytes of an array from a place, the first lowest: one instruction, for which numba has no name."""

    def _compile(self) -> Any:
        from llvmlite import ir  # type: ignore[import-untyped]  # noqa: PLC0415 - with the first call, as numba
        from numba import types  # noqa: PLC0415
        from numba.extending import intrinsic  # noqa: PLC0415

        @intrinsic
        def load(_: Any, array: Any, at: Any) -> Any:  # noqa: ARG001  numba counts them
            def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                first = context.make_array(signature.args[0])(context, builder, values[0]).data
                place = builder.bitcast(builder.gep(first, [values[1]]), ir.IntType(64).as_pointer())
                return builder.load(place, align=1)

            return types.uint64(array, types.uint64), emit

        return load


def _load(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 8], "little")


eight_bytes = _Load(_load)


@inner
def word(text: bytes, at: Any) -> Any:
    """Eight characters, the first in the lowest byte, less the code of "0"; those beyond the end are no digits."""
    last = U(len(text)) - U(8)
    if at <= last:
        return eight_bytes(text, at) ^ U(0x3030303030303030)
    return (eight_bytes(text, last) >> (U(8) * (at - last))) ^ U(0x3030303030303030)


@inner
def others(digits: Any) -> Any:
    """The high bit of each byte up to the first that is no digit, which has it; 0 if all are digits."""
    return ((digits + U(0x7676767676767676)) | digits) & U(0x8080808080808080)


@inner
def count(marks: Any) -> Any:
    """Digits before the first mark of `others`, if there is one."""
    return ((((marks & (~marks + U(1))) - U(1)) & U(0x0101010101010101)) * U(0x0101010101010101) >> U(56)) - U(1)


@inner
def eight(digits: Any) -> Any:
    """The number that eight digits write."""
    pairs = digits * U(10) + (digits >> U(8))
    first = (pairs & U(0x000000FF000000FF)) * U(0x000F424000000064)
    return first + ((pairs >> U(16)) & U(0x000000FF000000FF)) * U(0x0000271000000001) >> U(32)


@inner
def digits_at(text: bytes, at: Any, value: Any) -> Any:
    """`value` with the digits from `at` appended, and where they end. It wraps around beyond 19 digits."""
    found = word(text, at)
    marks = others(found)
    while marks == U(0):
        value = value * U(100_000_000) + eight(found)
        at += U(8)
        found = word(text, at)
        marks = others(found)
    n = count(marks)
    return value * WHOLE[n] + eight((found << U(8)) << (U(56) - U(8) * n)), at + n


@inner
def high_product(a: Any, b: Any) -> Any:
    """The upper 64 of the 128 bits of a·b."""
    low = U(0xFFFFFFFF)
    middle = (a >> U(32)) * (b & low) + ((a & low) * (b & low) >> U(32))
    other = (a & low) * (b >> U(32)) + (middle & low)
    return (a >> U(32)) * (b >> U(32)) + (middle >> U(32)) + (other >> U(32))


@inner
def nearest(w: Any, q: Any) -> Any:
    """The float nearest to w·10^q; -1 where it is not a normal one. Lemire (2021), algorithm 1, w > 0."""
    zeros = 0
    if w >> U(32) == U(0):
        w, zeros = w << U(32), 32
    lead = 1075 - np.int64(np.float64(w >> U(11)).view(np.uint64) >> U(52))
    w <<= U(lead)
    place = U(2 * (q + 342))
    high, low = high_product(w, FIVES[place]), w * FIVES[place]
    if high & U(0x1FF) == U(0x1FF):
        more = high_product(w, FIVES[place + U(1)])
        low += more
        high += U(more > low)
    upper = high >> U(63)
    shift = upper + U(9)
    mantissa = high >> shift
    exponent = (217706 * q >> 16) + 63 + np.int64(upper) - lead - zeros + 1023
    if low <= U(1) and -4 <= q <= 23 and mantissa & U(3) == U(1) and mantissa << shift == high:
        mantissa &= ~U(1)  # exactly between two floats
    mantissa = (mantissa + (mantissa & U(1))) >> U(1)
    if mantissa == U(1) << U(53):
        mantissa, exponent = mantissa >> U(1), exponent + 1
    if exponent <= 0 or exponent >= 2047:
        return -1.0
    return U((mantissa & ~(U(1) << U(52))) | (U(exponent) << U(52))).view(np.float64)


@inner
def number(text: bytes, at: Any) -> Any:
    """The number at `at`, where it ends, and whether it is one, as RFC 8259 writes them, and is without doubt."""
    negative = text[at] == U(45)
    start = at + U(negative)
    w, at = digits_at(text, start, U(0))
    digits = at - start
    good = digits > U(0) and (digits == U(1) or text[start] != U(48))
    q: Any = 0
    plain = True
    if text[at] == U(46):
        plain = False
        first = at + U(1)
        w, at = digits_at(text, first, w)
        good = good and at > first
        q = np.int64(first) - np.int64(at)
        digits += at - first
    if digits > U(19):  # zeros in front do not count
        place = start
        while text[place] == U(48) or text[place] == U(46):
            digits -= U(text[place] == U(48))
            place += U(1)
        good = good and digits <= U(19)
    if text[at] | U(32) == U(101):
        plain = False
        at += U(1)
        down = text[at] == U(45)
        first = at + U(down or text[at] == U(43))
        power, at = digits_at(text, first, U(0))
        good = good and first < at < first + U(5)
        q += -np.int64(power) if down else np.int64(power)
    x = 0.0
    if w <= U(9007199254740992) and -22 <= q <= 22:
        x = np.float64(w) / TENS[U(-q)] if q < 0 else np.float64(w) * TENS[U(q)]
    elif good and w > U(0) and not plain and -342 <= q <= 308:
        x = nearest(w, q)
        good = x >= 0.0
    else:
        good = False
    if negative and not (plain and w == U(0)):  # a whole -0 is 0
        x = -x
    return x, at, good

"""Decimal to binary, for compiled readers: the float nearest to what digits in a text write.

After Lemire (2021), Number parsing at a gigabyte per second, Softw. Pract. Exper. 51:1700, and Mushtak & Lemire
(2023), Fast number parsing without fallback, ibid. 53:1467: w·10^q with w < 2^64 is the product of w and 128 bits of
5^q, rounded to the nearest float, half to even. Eight digits are read at a time (2021, sec. 3), and where they end
is found for the whole number at once.
In the kernels all indices and words are unsigned: numba then neither wraps them nor makes them floats.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.numerics.decoding.instructions import (
    digits_before,
    leading_zeros,
    not_digits,
    product,
    trailing_zeros,
    unlikely,
)
from app.ml.numerics.jit import inner, not_inlined

Words = NDArray[np.uint64]
U = np.uint64

MIN_POWER, MAX_POWER = -342, 308
"""Powers of ten beyond which every product of 64 bits is 0 or infinite."""


def _fives() -> Words:
    """High and low, the 128 bits of 5^q for each q, rounded down; for q < 0 those of the reciprocal, rounded up."""
    words: list[int] = []
    for q in range(MIN_POWER, MAX_POWER + 1):
        five = 5 ** abs(q)
        size = (five - 1).bit_length()  # 2^size >= 5^-q
        bits = five << 128 if q >= 0 else 2 ** (size + 127 if q >= -27 else 2 * size + 128) // five + 1
        bits >>= bits.bit_length() - 128
        words += [bits >> 64, bits & (2**64 - 1)]
    return np.array(words, np.uint64)


FIVES = _fives()
TENS = 10.0 ** np.arange(23)
"""Exact."""


@inner
def exponent_of(q: Any) -> Any:
    """The term that 10^q adds to the exponent in a float's bits."""
    return U((217706 * q >> 16) + 1085)


FIFTHS = FIVES[2 * (np.arange(0, -23, -1) - MIN_POWER)]
EXPONENTS = np.array([exponent_of.python(-behind) for behind in range(23)], np.uint64)
"""For so many digits behind the point: the high words of 5^-behind, and the exponents."""


BEFORE, BEHIND = 33, 32
"""Bytes in front of a number and from it on that `quick_digits` may look at."""


@inner
def rounded(high: Any, exponent: Any) -> Any:
    """The bits of a float: half of the 54 bits that lead in `high`, to even, times a power of two."""
    upper = high >> U(63)
    mantissa = high >> (upper + U(9))  # whose highest bit counts as an exponent of 1
    return ((exponent + upper) << U(52)) + ((mantissa + (mantissa & U(1))) >> U(1))


@not_inlined
def nearest(w: Any, q: Any) -> Any:
    """The bits of the float nearest to w·10^q; 0 where it is not a normal one. Lemire (2021), algorithm 1, w > 0."""
    lead = leading_zeros(w)
    w <<= lead
    place = U(2 * (q + 342))
    high, low = product(w, FIVES[place])
    if high & U(0x1FF) == U(0x1FF):
        more = product(w, FIVES[place + U(1)])[0]
        low += more
        high += U(more > low)
    shift = (high >> U(63)) + U(9)
    if low <= U(1) and -4 <= q <= 23 and high >> shift << shift == high and (high >> shift) & U(3) == U(1):
        high -= U(1)  # exactly between two floats, the even one below
    bits = rounded(high, exponent_of(q) - lead)
    return bits if bits - (U(1) << U(52)) < U(2046) << U(52) else U(0)


@inner
def quotient(w: Any, behind: Any) -> Any:
    """The bits of the float nearest to w·10^-behind, for up to 22 digits behind the point."""
    if w < U(10**15):
        return np.float64(np.float64(np.int64(w)) / TENS[behind]).view(np.uint64)
    lead = leading_zeros(w)
    high, low = product(w << lead, FIFTHS[behind])
    if unlikely(high & U(0x1FF) == U(0x1FF)) or unlikely(low <= U(1)):
        return nearest(w, -np.int64(behind))
    return rounded(high, EXPONENTS[behind] - lead)


@not_inlined
def powered(text: bytes, position: Any, w: Any, behind: Any) -> Any:
    """The bits of w·10^-behind times the power of ten behind an "e" at `position`, its end, whether it is sure."""
    position += U(1)
    down = text[position] == U(45)
    first = position + U(down or text[position] == U(43))
    position, power = first, np.int64(0)
    while text[position] - U(48) < U(10) and position < first + U(5):
        power = power * 10 + np.int64(text[position] - U(48))
        position += U(1)
    if not first < position < first + U(5):
        return U(0), position, False
    q = (-power if down else power) - np.int64(behind)
    if w <= U(9007199254740992) and -22 <= q <= 22:
        x = np.float64(np.int64(w))
        x = x / TENS[U(-q)] if q < 0 else x * TENS[U(q)]
        return np.float64(x).view(np.uint64), position, True
    if w == U(0) or not -342 <= q <= 308:
        return U(0), position, False
    bits = nearest(w, q)
    return bits, position, bits > U(0)


@inner
def quick_digits(text: bytes, position: Any) -> Any:
    """The digits of a number (at most 23, no exponent), how many of them are behind the point, and its sign.

    Then where they end, and whether this is such a number.
    """
    negative = U(text[position] == U(45))
    marks = not_digits(text, position) & ~negative
    point = trailing_zeros(marks)
    whole = point - negative
    none = U(0), U(0), negative, position, False
    if unlikely(whole - U(1) >= U(23)) or (whole != U(1) and text[position + negative] == U(48)):
        return none
    if text[position + point] == U(46):
        end = trailing_zeros(marks & (marks - U(1)))
        behind = end - point - U(1)
        if unlikely(behind - U(1) >= U(23) - whole):
            return none
        most, more, least = digits_before(text, position + end, behind, whole + behind)
    else:
        if unlikely(whole > U(15)) or (negative and text[position + U(1)] == U(48)):  # a whole -0 is 0
            return none
        end, behind = point, U(0)
        most, more, least = digits_before(text, position + end, whole, whole)
    if unlikely(most >= U(1000)):  # more than 19 digits
        return none
    return (most * U(100_000_000) + more) * U(100_000_000) + least, behind, negative, position + end, True


@not_inlined
def number(text: bytes, position: Any) -> Any:
    """The bits of the number at `position`, where it ends, and whether RFC 8259 knows it and it is without doubt."""
    negative = U(text[position] == U(45))
    position += negative
    start, w, digits, behind = position, U(0), U(0), U(0)
    pointed = False
    while True:
        digit = text[position] - U(48)
        if digit < U(10):
            w = w * U(10) + digit
            digits += U(digits > U(0) or digit > U(0))
            behind += U(pointed)
        elif text[position] == U(46) and not pointed and position > start:
            pointed = True
        else:
            break
        position += U(1)
    whole = position - start - behind - U(pointed)
    good = whole > U(0) and (whole == U(1) or text[start] != U(48)) and pointed == (behind > U(0)) and digits <= U(19)
    if text[position] | U(32) == U(101):
        bits, position, sure = powered(text, position, w, behind)
    elif w <= U(9007199254740992) and behind <= U(22):
        bits, sure = quotient(w, behind), True
        negative &= U(pointed or w > U(0))
    else:
        sure = pointed and w > U(0) and behind <= U(342)
        bits = nearest(w, -np.int64(behind)) if sure else U(0)
        sure = bits > U(0)
    return bits | negative << U(63), position, good and sure

"""Code written for LLVM equals its twin in Python."""

import numpy as np
import pytest

from app.ml.numerics.decoding.instructions import (
    digits_before,
    eight_bytes,
    leading_zeros,
    not_digits,
    product,
    trailing_zeros,
    unlikely,
)
from app.ml.numerics.jit import TEXT, kernel

U = np.uint64


@kernel(f"void({TEXT}, u8, u8, u8, u8[::1])", writes=["out"])
def all_of_them(text, at, a, b, out):
    out[0], out[1] = product(a, b)
    out[2], out[3] = leading_zeros(a), trailing_zeros(a)
    out[4], out[5] = eight_bytes(text, at), not_digits(text, at)
    out[6] = 1 if unlikely(a > b) else 0


@kernel(f"void({TEXT}, u8, u8, u8, u8[::1])", writes=["out"])
def digits(text, end, behind, total, out):
    out[0], out[1], out[2] = digits_before(text, end, behind, total)


def test_words():
    rng = np.random.default_rng(0)
    text = b"0123456789/:;.-9aA\x00\xff\x80" * 4
    for a, b in (rng.integers(0, 2**64, (50, 2), np.uint64) >> rng.integers(0, 64, (50, 2), np.uint64)).tolist():
        at, out = a % 40, np.empty(7, np.uint64)
        all_of_them(text, at, a, b, out)
        twins = [*product.python(a, b), leading_zeros.python(a), trailing_zeros.python(a)]
        twins += [eight_bytes.python(text, at), not_digits.python(text, at), unlikely.python(a > b)]
        assert out.tolist() == twins
    all_of_them(text, 0, 0, 0, out)
    assert out.tolist()[:4] == [0, 0, 64, 64]
    assert not_digits.python(text, 0) & 0xFFFF == 0b0111_1100_0000_0000


@pytest.mark.parametrize("behind", [0, 1, 7, 8, 9, 15, 16, 22, 24])
def test_digits_around_a_point(behind):
    written = "987654321098765432109876"
    for total in range(max(1, behind), 25):
        whole, rest = written[: total - behind], written[total - behind : total]
        text, out = ("," * 40 + whole + ("." + rest if behind and whole else rest)).encode(), np.empty(3, np.uint64)
        taken = behind if whole and behind else total
        digits(text, len(text), taken, total, out)
        most, more, least = out.tolist()
        assert (most * 10**8 + more) * 10**8 + least == int(whole + rest)
        assert (most, more, least) == digits_before.python(text, len(text), taken, total)

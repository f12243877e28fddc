import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import MalformedJSON
from app.formats.strict_json import LONG_INTEGER, MIN_BYTES_FOR_NUMPY, STRING, _bare, _long_integers, parse

DEPTH = 64
REFUSED = [
    (b"", "empty_body"),
    (b" \n\t", "empty_body"),
    (b"{", "malformed_json"),
    (b"{} x", "malformed_json"),
    (b"{}{}", "malformed_json"),
    (b'{"a": 1,}', "malformed_json"),
    (b"{'a': 1}", "malformed_json"),
    (b"[01]", "malformed_json"),
    (b"[1 2]", "malformed_json"),
    (b"[+1]", "malformed_json"),
    (b"[0x10]", "malformed_json"),
    (b'["\\x41"]', "malformed_json"),
    (b"/* a */ {}", "malformed_json"),
    (b'["a\nb"]', "malformed_json"),
    (b"[NaN]", "non_finite_number"),
    (b'{"x": nan}', "non_finite_number"),
    (b"[Infinity]", "non_finite_number"),
    (b"[-Infinity]", "non_finite_number"),
    (b"[1e999]", "number_out_of_range"),
    (b"-1e999", "number_out_of_range"),
    (b"[18446744073709551616]", "number_out_of_range"),
    (b"[-9223372036854775809]", "number_out_of_range"),
    (b'{"x":' + b"1" * 4000 + b"}", "number_out_of_range"),
    (b"1" * 5000, "number_out_of_range"),
    (b'"\\ud800"', "lone_surrogate"),
    (b'"\\udc00\\ud800"', "lone_surrogate"),
    (b'{"\\uDBFF": 1}', "lone_surrogate"),
    (b'"a\\u0000b"', "nul_character"),
    (b'{"\\u0000": 1}', "nul_character"),
    (b'"\\\\\\u0000"', "nul_character"),
    (b'["a\0b"]', "nul_character"),
    (b'{"a": 1, "a": 1}', "duplicate_key"),
    (b'{"a": 1, "\\u0061": 2}', "duplicate_key"),
    (b'[{"x": [{"b": {"a": 1, "a": 2}}]}]', "duplicate_key"),
    (b"[" * 65 + b"]" * 65, "too_deep"),
    (b'{"a":' * 65 + b"1" + b"}" * 65, "too_deep"),
    (b"[" * 900 + b"]" * 900, "too_deep"),
    (b"[" * 100_000 + b"]" * 100_000, "too_deep"),
    (b"[" * 100_000, "too_deep"),
    ('{"a": 1}'.encode("utf-16"), "invalid_encoding"),
    ('{"a": 1}'.encode("utf-16-le"), "invalid_encoding"),
    ('{"a": 1}'.encode("utf-16-be"), "invalid_encoding"),
    ('{"a": 1}'.encode("utf-32"), "invalid_encoding"),
    (b"\xef\xbb\xbf{}", "invalid_encoding"),
    (b'"\xff"', "invalid_encoding"),
    (b'"\xc0\x80"', "invalid_encoding"),
    (b'"\xed\xa0\x80"', "invalid_encoding"),
]


@pytest.mark.parametrize(("body", "code"), REFUSED, ids=lambda value: repr(value[:24]))
def test_every_trick_has_its_own_error_code(body, code):
    with pytest.raises(MalformedJSON) as refusal:
        parse(body, DEPTH)
    assert refusal.value.code == code
    assert 400 <= refusal.value.status < 500


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"[0.1234567890123456789012]", [0.1234567890123456789012]),
        (b"1e-0000000000000000000000001", 0.1),
        (b"12345678901234567890.5", 12345678901234567890.5),
        (b"10000000000000000000000e0", 1e22),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
        (b'"\\\\u0000"', "\\u0000"),
        (b'{"a": {"a": 1}, "b": {"a": 1}}', {"a": {"a": 1}, "b": {"a": 1}}),
        (b'{":": ":", "[": "[[[[", "\\"": "{"}', {":": ":", "[": "[[[[", '"': "{"}),
        (b'"99999999999999999999999"', "99999999999999999999999"),
        (b'"NaN"', "NaN"),
        (b"null", None),
    ],
)
def test_what_only_looks_like_a_trick_passes(body, value):
    assert parse(body, DEPTH) == value


@pytest.mark.parametrize("deep", [1, 63, 64])
def test_depth_is_counted_up_to_the_limit_and_not_within_strings(deep):
    inner = '"[[[{{{\\"["'
    assert parse(("[" * deep + inner + "]" * deep).encode(), DEPTH)


KEYS = st.text(st.sampled_from('ab:"\\[{é'))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)


@given(VALUES, st.booleans())
def test_ordinary_json_reads_as_the_standard_library_reads_it(value, ascii_only):
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert parse(body, DEPTH) == json.loads(body)


@given(st.binary(max_size=200) | st.text(st.sampled_from('[]{}",:\\u0d8e1.-+NaIn ')).map(str.encode))
def test_any_bytes_are_read_or_refused_by_name(body):
    """And what is read, is what the standard library reads without complaint."""
    try:
        value = parse(body, DEPTH)
    except MalformedJSON:
        return
    assert value == json.loads(body, object_pairs_hook=_unique, parse_constant=pytest.fail)


def _unique(pairs):
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@pytest.mark.parametrize("body", [b'"\\"' * 3_000_000, b'"' + b"\\\\" * 3_000_000, b"1." * 3_000_000, b"-" * 3_000_000])
def test_a_hostile_text_is_not_read_twice_over(body):
    """Anything quadratic would take days here."""
    with pytest.raises(MalformedJSON):
        parse(body, DEPTH)


SIGNS, DIGITS = ["", "-"], ["0", "7", "9" * 18, "9" * 19, "1" * 25, "5" + "0" * 30]
FRACTIONS, EXPONENTS = ["", ".0", "." + "3" * 19], ["", "e5", "E-" + "0" * 25, "e+" + "0" * 19 + "1"]
NUMBERS = st.tuples(*map(st.sampled_from, (SIGNS, DIGITS, FRACTIONS, EXPONENTS))).map("".join)


@given(st.lists(NUMBERS), st.sampled_from([",", ", ", "],["]))
def test_long_integers_are_found_the_short_way(numbers, between):
    text = between.join(numbers).encode()
    assert list(_long_integers(text)) == LONG_INTEGER.findall(text)


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers(), max_size=3), max_size=4))
def test_strings_are_taken_out_alike_of_short_and_long_texts(values):
    text = json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")
    text = text + b" " * MIN_BYTES_FOR_NUMPY
    assert _bare(text) == STRING.sub(b"", text)

r"""Terms of documents: words, runs of words and runs of characters, and how often each document has each.

A document is brought into Unicode's normal form NFC and, if wanted, into lower case, letter by letter; case is not
folded further (ß stays ß). A word is a longest run of letters, digits and underscores, as Python's `\w` has them, of
at least two characters. Documents are worked on in blocks, as arrays of code points; strings are made of the
different terms only.

Reference: the terms are those of scikit-learn's CountVectorizer with the same settings.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels
from app.ml.preparation.text_request import TextColumn

CodePoints: TypeAlias = NDArray[np.uint32]
Truths: TypeAlias = NDArray[np.bool_]
MIN_WORD_LENGTH = 2
"""Characters of a word at least."""
SPACE = 32
BLOCK = 1 << 19
"""Bytes of documents that are worked on at once; each takes about 50 bytes of memory, more of long runs."""


class Units(NamedTuple):
    """Words or characters of all documents, one after the other."""

    codes: Labels
    """(t,) places among the names."""
    names: pa.Array
    """(u,) different ones."""
    documents: Labels
    """(t,) where each of them stands, ascending."""
    segments: Labels
    """(t,) ascending: a run of units has the same one."""


class Terms(NamedTuple):
    """Terms of some documents, wherever they stand."""

    documents: Labels
    """(t,)"""
    codes: Labels
    """(t,) places among the names."""
    names: pa.Array
    """(m,) different terms, in no particular order."""


def blocks(documents: pa.Array) -> Iterator[pa.Array]:
    """The documents (n,), strings, in parts, at least one: none has more than `BLOCK` bytes beside its first."""
    sizes = pc.fill_null(pc.binary_length(documents), 0).to_numpy(zero_copy_only=False)
    edges = np.flatnonzero(np.diff(np.cumsum(sizes) // BLOCK)) + 1
    for start, end in pairwise([0, *edges.tolist(), len(documents)]):
        yield documents.slice(start, end - start)


def terms_of(documents: pa.Array, how: TextColumn) -> Terms:
    """documents: (n,) strings; null counts as the empty string, which has no terms."""
    texts = normal(documents, how)
    units = _words(texts, how) if how.analyzer == "word" else _characters(texts, words=how.analyzer == "char_wb")
    parts = [*_runs(units, how)]
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part.names) for part in parts)]).tolist()
    return Terms(
        np.concatenate([part.documents for part in parts]),
        np.concatenate([part.codes + start for part, start in zip(parts, starts, strict=False)]),
        pa.concat_arrays([part.names for part in parts]),
    )


def normal(documents: pa.Array, how: TextColumn) -> pa.Array:
    """The documents as their characters are compared; null is the empty string."""
    texts = pc.utf8_normalize(pc.fill_null(documents.cast(pa.string()), ""), form="NFC")
    return pc.utf8_lower(texts) if how.lowercase else texts


def _words(texts: pa.Array, how: TextColumn) -> Units:
    points, document = _code_points(texts)
    inside = _word_characters()[points]
    starts, ends = _stretches(inside, document)
    long = ends - starts >= MIN_WORD_LENGTH
    starts, ends = starts[long], ends[long]
    sizes = 1 + (points >= 0x80).view(np.uint8) + (points >= 0x800) + (points >= 0x10000)
    places = np.zeros(points.size + 1, np.int32)
    np.cumsum(sizes, out=places[1:])
    edges = np.column_stack([places[starts], places[ends]]).ravel()  # words, and what is between them
    data = pa.py_buffer(_bytes(texts))
    stretches = pa.Array.from_buffers(
        pa.string(), max(0, edges.size - 1), [None, pa.py_buffer(np.ascontiguousarray(edges, np.int32)), data]
    )
    words, owner = stretches.take(pa.array(np.arange(0, edges.size, 2))), document[starts]
    if how.stop_words:
        is_used = pc.invert(pc.is_in(words, value_set=normal(pa.array(how.stop_words), how)))
        words, owner = words.filter(is_used), owner[is_used.to_numpy(zero_copy_only=False)]
    coded = words.dictionary_encode()
    return Units(coded.indices.to_numpy().astype(np.intp), coded.dictionary, owner, owner)


def _characters(texts: pa.Array, *, words: bool) -> Units:
    """words: runs stay within words, each between two spaces of its own; else several blanks count as one space."""
    points, document = _code_points(texts)
    blank = _blanks()[points]
    if words:
        starts, ends = _stretches(~blank, document)
        lengths = ends - starts + 2
        last = np.cumsum(lengths)
        within = np.arange(lengths.sum()) - np.repeat(last - lengths - starts, lengths)
        points = np.concatenate([[SPACE], points, [SPACE]])[within]
        points[last - lengths] = points[last - 1] = SPACE
        segment, document = np.repeat(np.arange(starts.size), lengths), np.repeat(document[starts], lengths)
    else:
        twice = blank[:-1] & blank[1:] & (document[:-1] == document[1:])
        points = np.where(np.append(twice, False), SPACE, points)
        is_single = ~np.insert(twice, 0, False)[: points.size]
        points, document = points[is_single], document[is_single]
        segment = document
    coded = pa.array(points).dictionary_encode()
    names = pa.array([chr(point) for point in coded.dictionary.to_pylist()], pa.string())
    return Units(coded.indices.to_numpy().astype(np.intp), names, document, segment)


def _runs(units: Units, how: TextColumn) -> Iterator[Terms]:
    """Those of each length in turn; a word between spaces that is shorter than the least counts as a whole."""
    (least, most), joint = how.ngram_range, " " if how.analyzer == "word" else ""
    starts, codes, names = np.arange(units.codes.size), units.codes, units.names
    lengths = np.bincount(units.segments) if how.analyzer == "char_wb" else np.zeros(0, np.intp)
    for length in range(1, most + 1):
        if length >= least:
            yield Terms(units.documents[starts], codes, names)
        elif lengths.size:
            whole = lengths[units.segments[starts]] == length
            yield Terms(units.documents[starts][whole], codes[whole], names)
        if length < most:
            onwards = starts + length < units.codes.size
            onwards[onwards] = units.segments[starts[onwards]] == units.segments[starts[onwards] + length]
            starts = starts[onwards]
            keys = codes[onwards] * len(units.names) + units.codes[starts + length]
            coded = pa.array(keys).dictionary_encode()
            codes = coded.indices.to_numpy().astype(np.intp)
            before, last = np.divmod(coded.dictionary.to_numpy(), max(1, len(units.names)))
            names = pc.binary_join_element_wise(names.take(pa.array(before)), units.names.take(pa.array(last)), joint)


def _code_points(texts: pa.Array) -> tuple[CodePoints, Labels]:
    """(t,) all characters, and the document of each."""
    points = np.frombuffer(str(_bytes(texts), "utf-8").encode("utf-32-le"), np.uint32)
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    return points, np.repeat(np.arange(len(texts)), lengths)


def _bytes(texts: pa.Array) -> memoryview:
    """The documents in UTF-8, without anything between them."""
    _, offsets, data = texts.buffers()
    edges = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data or b"")[edges[0] : edges[-1]]


def _stretches(inside: Truths, document: Labels) -> tuple[Labels, Labels]:
    """Start and end of each longest run of characters that are inside, within a document."""
    joined = inside[:-1] & inside[1:] & (document[:-1] == document[1:])
    starts = inside & ~np.insert(joined, 0, False)[: inside.size]
    ends = inside & ~np.append(joined, False)[: inside.size]
    return np.flatnonzero(starts), np.flatnonzero(ends) + 1


@cache
def _word_characters() -> Truths:
    """By code point: true of a letter, digit or underscore."""
    return _matching(r"\w+")


@cache
def _blanks() -> Truths:
    return _matching(r"\s+")


def _matching(pattern: str) -> Truths:
    table = np.zeros(sys.maxunicode + 1, np.bool_)
    for match in re.finditer(pattern, "".join(map(chr, range(sys.maxunicode + 1)))):
        table[slice(*match.span())] = True
    return table

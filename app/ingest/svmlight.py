"""SVMLight and LibSVM: a label and pairs of an index and a value in each line, `1 qid:3 2:0.5 7:1 # comment`.

The columns are `label`, `qid` if there is one, and one of each index up to the largest, from 0 where the index 0 occurs
and else from 1. What a line leaves out is zero. Arrow splits the lines; the table is dense, a batch at a time.
Reference: Joachims' SVMlight, "Input files"; Chang & Lin's LIBSVM, README.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.ingest.reader_result import Reading, check_names, refuse
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import BOM, Limits, Source

BLOCK_BYTES = 1 << 20
BATCH_CELLS = 1 << 22
LABEL, QUERY = "label", "qid"
RECOGNISED_LINES = 20
_PAIR = rb"[0-9]+:[-+0-9.eE]+"
_LINE = re.compile(rb"[^\s:#]+[ \t]+(?:qid:[0-9]+[ \t]+)?" + _PAIR + rb"(?:[ \t]+" + _PAIR + rb")*[ \t]*(?:#.*)?")
_CLOCK = re.compile(rb"(?:^|\s)[0-2]?[0-9]:[0-5][0-9](?=\s|$)")
_COMMENT = re.compile(rb"#[^\n]*")
_PAIRS = (
    "A line has a label and pairs of a whole number and a number with a colon between them, such as `1 3:0.5 7:2`; no "
    "index occurs twice."
)


def is_svmlight(head: bytes) -> bool:
    """True if the first lines of a file that begins so have a label and pairs each, which are no times of day."""
    lines = [line.strip() for line in head.removeprefix(BOM).splitlines()[: RECOGNISED_LINES + 1]]
    rows = [line for line in lines[:-1] or lines if line and not line.startswith(b"#")]
    return (
        bool(rows)
        and all(_LINE.fullmatch(line) for line in rows)
        and not all(len(_CLOCK.findall(line)) == line.count(b":") for line in rows)
    )


class _Block(NamedTuple):
    """Some rows in coordinates."""

    labels: pa.Array
    queries: np.ndarray | None
    rows: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @property
    def height(self) -> int:
        return len(self.labels)


class _Survey(NamedTuple):
    first: int
    """The smallest index of a column: 0 or 1."""
    last: int
    queries: bool
    label_type: pa.DataType
    is_whole: np.ndarray
    """(columns,): True if all values of the column are whole numbers."""


def read(source: Source, limits: Limits, _options: ReadOptions) -> Reading:
    survey = _survey(source, limits)
    numbers = range(survey.first, survey.last + 1)
    names = [LABEL, *([QUERY] if survey.queries else []), *(f"f{number}" for number in numbers)]
    check_names(names, limits)
    types = [survey.label_type, *([pa.int64()] if survey.queries else [])]
    types += [pa.int64() if whole else pa.float64() for whole in survey.is_whole]
    return Reading(names, types, _batches(source, survey), encoding=source.encoding)


def _survey(source: Source, limits: Limits) -> _Survey:
    height, first, last, queries, label_type = 0, 1, 0, False, pa.int64()
    broken = np.zeros(0, np.bool_)
    for block in _blocks(source):
        height += block.height
        if height > limits.max_rows:
            raise InvalidData(f"The file has more than the {limits.max_rows} rows this service accepts.")
        queries = queries or block.queries is not None
        label_type = _wider(label_type, block.labels)
        if not len(block.indices):
            continue
        first, last = min(first, int(block.indices.min())), max(last, int(block.indices.max()))
        if last >= limits.max_columns:
            detail = (
                f"The file has an index {last}, which makes as many columns; this service accepts "
                f"{limits.max_columns}, as a table is not sparse here. Reduce the indices, such as by hashing or by "
                "choosing features."
            )
            raise InvalidData(detail, faults=[Fault("", detail, "too_many_columns")])
        broken = np.concatenate([broken, np.zeros(max(0, last + 1 - len(broken)), np.bool_)])
        broken[block.indices[block.values != np.floor(block.values)]] = True
    if not last and first:
        refuse([Fault("", "The file has no pair of an index and a value.", "no_values")])
    return _Survey(first, last, queries, label_type, ~broken[first:])


def _wider(label_type: pa.DataType, labels: pa.Array) -> pa.DataType:
    """The first type of whole numbers, numbers and texts that holds these labels and the earlier ones."""
    for data_type in (pa.int64(), pa.float64()):
        if label_type == data_type:
            try:
                _typed(labels, data_type)
            except pa.ArrowInvalid:
                label_type = pa.float64() if data_type == pa.int64() else pa.string()
    return label_type


def _typed(labels: pa.Array, data_type: pa.DataType) -> pa.Array:
    return pc.utf8_ltrim(labels, "+").cast(data_type) if data_type != pa.string() else labels


def _batches(source: Source, survey: _Survey) -> Iterator[list[pa.Array]]:
    width = survey.last + 1 - survey.first
    step = max(1, BATCH_CELLS // width)
    for block in _blocks(source):
        for start in range(0, block.height, step):
            height = min(step, block.height - start)
            low, high = np.searchsorted(block.rows, (start, start + height))
            dense = np.zeros((width, height))
            dense[block.indices[low:high] - survey.first, block.rows[low:high] - start] = block.values[low:high]
            labels = _typed(block.labels.slice(start, height), survey.label_type)
            queries = np.zeros(block.height) if block.queries is None else block.queries
            second = [pa.array(queries[start : start + height], from_pandas=True)] if survey.queries else []
            yield [labels, *second, *(pa.array(column) for column in dense)]


def _blocks(source: Source) -> Iterator[_Block]:
    """The rows of the file in order. Raises InvalidData with the line of a malformed one."""
    file = source.open()
    number = 0
    while lines := file.readlines(BLOCK_BYTES):
        raw = b"".join(lines)
        raw = raw.removeprefix(BOM) if number == 0 else raw
        text = _COMMENT.sub(b"", raw) if b"#" in raw else raw
        try:
            block = _parse(text)
        except (pa.ArrowInvalid, UnicodeDecodeError, ValueError):
            block = None
        if block is None:
            _refuse_line(text, number)
        number += len(lines)
        if block.height:
            yield block


def _parse(text: bytes) -> _Block | None:
    """The rows of whole lines; None where one is malformed. Raises ArrowInvalid for one, too."""
    lines = pc.utf8_trim_whitespace(pa.array(text.decode().splitlines(), pa.string()))
    lines = lines.filter(pc.not_equal(pc.binary_length(lines), 0))
    split = pc.utf8_split_whitespace(lines)
    offsets, tokens = split.offsets.to_numpy().astype(np.int64), split.flatten()
    heads = np.zeros(len(tokens), np.bool_)
    heads[offsets[:-1]] = True
    labels = tokens.take(pa.array(offsets[:-1]))
    rows = np.repeat(np.arange(len(lines)), np.diff(offsets))
    if pc.any(pc.match_substring(labels, ":")).as_py():
        return None
    pairs, rows = tokens.filter(pa.array(~heads)), rows[~heads]
    is_query = pc.starts_with(pairs, "qid:").to_numpy(zero_copy_only=False)
    queries = _queries(pairs.filter(pa.array(is_query)), rows[is_query], len(lines))
    pairs, rows = pairs.filter(pa.array(~is_query)), rows[~is_query]
    parts = pc.split_pattern(pairs, ":")
    if len(parts) and not pc.all(pc.equal(pc.list_value_length(parts), 2)).as_py():
        return None
    flat = parts.flatten()
    indices = flat.take(pa.array(np.arange(0, len(flat), 2))).cast(pa.int64()).to_numpy()
    values = flat.take(pa.array(np.arange(1, len(flat), 2))).cast(pa.float64()).to_numpy()
    if len(indices) and (indices.min() < 0 or _has_repeated(rows, indices) or not np.isfinite(values).all()):
        return None
    return _Block(labels, queries, rows, indices, values)


def _queries(tokens: pa.Array, rows: np.ndarray, height: int) -> np.ndarray | None:
    """The query of each row, missing where it has none; None without queries."""
    if not len(tokens):
        return None
    queries = np.full(height, np.nan)
    queries[rows] = pc.utf8_slice_codeunits(tokens, len("qid:")).cast(pa.int64()).to_numpy()
    return queries


def _has_repeated(rows: np.ndarray, indices: np.ndarray) -> bool:
    """True if a row has an index twice."""
    if not np.any((np.diff(indices) <= 0) & (np.diff(rows) == 0)):
        return False
    order = np.lexsort((indices, rows))
    return bool(np.any((np.diff(indices[order]) == 0) & (np.diff(rows[order]) == 0)))


def _refuse_line(text: bytes, before: int) -> NoReturn:
    """Name the first malformed line. before: number of lines in front of the text."""
    for number, line in enumerate(text.split(b"\n"), start=before + 1):
        try:
            malformed = _parse(line) is None
        except (pa.ArrowInvalid, UnicodeDecodeError, ValueError):
            malformed = True
        if malformed:
            refuse([Fault(place("line", number), _PAIRS, "malformed_line")])
    refuse([Fault(place("line", before + 1), _PAIRS, "malformed_line")])

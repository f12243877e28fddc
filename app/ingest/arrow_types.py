"""Types of columns: whatever Arrow holds in a flat column, as one of the five types of `app.ml.contract.columns`.

Integers stay integers up to 64 bits with a sign; larger ones are text, since floats would round them; floats and
decimals are float64, durations their seconds. NaN and infinity are missing, the latter with a warning, and so are
times outside the years 1 to 9999. Blanks around texts do not count, and a text without anything else is missing.
Dictionaries are decoded, times of day and bytes that are UTF-8 become text, times without a zone are taken as UTC and
cut to the microsecond.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.ingest.joined_columns import in_groups
from app.ingest.reader_result import Reading, refuse
from app.ingest.uploaded_file import Limits
from app.ml.contract.dates_and_times import TIME
from app.ml.contract.notation import without_missing
from app.ml.tables.data_sheet import Remark

_EARLIEST, _LATEST = (
    int(moment.replace(tzinfo=UTC).timestamp()) * 1_000_000
    for moment in (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59))  # noqa: DTZ001  zone added above
)
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""By the unit of a duration, how many there are in a second."""
_INFINITE = "{} infinite values were read as missing."
_DISTANT = "{} times outside the years 1 to 9999 were read as missing."


def own_type(data_type: pa.DataType) -> pa.DataType | None:
    """The type a column of type `data_type` gets; None if its values are not plain."""
    is_ = pa.types
    if is_.is_dictionary(data_type):
        return own_type(data_type.value_type)
    if isinstance(data_type, pa.BaseExtensionType):
        return own_type(data_type.storage_type)
    rules = (
        (is_.is_boolean, pa.bool_()),
        (is_.is_integer, pa.int64()),
        (lambda t: is_.is_decimal(t) and t.scale == 0, pa.int64()),
        (lambda t: is_.is_floating(t) or is_.is_decimal(t) or is_.is_null(t) or is_.is_duration(t), pa.float64()),
        (lambda t: is_.is_string(t) or is_.is_large_string(t) or is_.is_string_view(t) or is_.is_time(t), pa.string()),
        (lambda t: is_.is_binary(t) or is_.is_large_binary(t) or is_.is_fixed_size_binary(t), pa.string()),
        (lambda t: is_.is_timestamp(t) or is_.is_date(t), TIME),
    )
    return next((plain_type for fits, plain_type in rules if fits(data_type)), None)


def may_be_long(data_type: pa.DataType) -> bool:
    """True for a type of whole numbers that may not be within 64 bits with a sign."""
    return bool(
        pa.types.is_uint64(data_type)
        or (pa.types.is_decimal(data_type) and data_type.scale == 0 and data_type.precision > INT64_DIGITS)
    )


def is_long(values: pa.Array) -> bool:
    """True if a whole number is not within 64 bits with a sign."""
    try:
        plain(values).cast(pa.int64())
    except pa.ArrowInvalid:
        return True
    return False


INT64_DIGITS = 18
"""Every whole number of so many digits is within 64 bits."""


class Settled:
    """The batches of a reading in their own types, and the warnings that arose while reading."""

    def __init__(self, reading: Reading, limits: Limits) -> None:
        self.schema = pa.schema(list(zip(reading.names, reading.types, strict=True)))
        self.rows = 0
        self.sizes = [0] * len(reading.names)
        """Sizes of the columns so far, in bytes of memory."""
        self.index = reading.index
        self._reading, self._limits, self._remarks = reading, limits, cache(reading.remarks)
        self._warnings: dict[str, Counter[str]] = {name: Counter() for name in reading.names}

    def remark(self, name: str) -> Remark:
        """Remark on a column, once all batches are read."""
        remark = self._remarks().get(name, Remark())
        warnings = [sentence.format(count) for sentence, count in self._warnings[name].items()]
        return remark._replace(warnings=[*remark.warnings, *warnings])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for columns in self._reading.batches:
            yield self._batch(columns)
        if not self.rows:
            raise InvalidData("The file has no rows: upload one that has some.")

    def _batch(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        keys = [_key(*types) for types in zip(self.schema.types, columns, strict=True)]
        settled = in_groups(columns, keys, self._settle)
        self.sizes = [size + values.nbytes for size, values in zip(self.sizes, settled, strict=True)]
        self.rows += len(settled[0])
        if self.rows > self._limits.max_rows:
            raise InvalidData(f"The file has more than the {self._limits.max_rows} rows this service accepts.")
        return pa.RecordBatch.from_arrays(settled, schema=self.schema)

    def _settle(self, values: pa.Array, numbers: Sequence[int]) -> pa.Array | None:
        """None for several joined columns of which one has a warning or a fault."""
        field = self.schema.field(numbers[0])
        name = field.name if len(numbers) == 1 else None
        cells = plain(values)
        if field.type == pa.float64():
            return self._finite(name, cells.cast(pa.float64(), safe=False))
        if field.type == TIME:
            return self._near(name, cells)
        if field.type == pa.string():
            return self._text(name, cells)
        return cells.cast(field.type)

    def _text(self, name: str | None, values: pa.Array) -> pa.Array | None:
        try:
            texts = values.cast(pa.string())
        except pa.ArrowInvalid:
            if name is None:
                return None
            detail = f"The column holds bytes ({values.type}) that are no UTF-8 text: write it as text or as numbers."
            refuse([Fault(place("column", name), detail, "column_type")])
        return self._without_nul(name, without_missing(texts))

    def _finite(self, name: str | None, values: pa.Array) -> pa.Array | None:
        finite = pc.is_finite(values)
        if pc.all(finite).as_py():
            return values
        infinite = pc.sum(pc.is_inf(values)).as_py() or 0
        if infinite:
            if name is None:
                return None
            self._warnings[name] += Counter({_INFINITE: infinite})
        return pc.if_else(finite, values, pa.scalar(None, pa.float64()))

    def _near(self, name: str | None, values: pa.Array) -> pa.Array | None:
        try:
            zone = values.type.tz if pa.types.is_timestamp(values.type) else None
            cut = pc.CastOptions(target_type=pa.timestamp("us", zone), allow_time_truncate=True)
            moments = values.cast(options=cut).cast(pa.int64())
        except pa.ArrowInvalid:
            if name is None:
                return None
            refuse([Fault(place("column", name), "A time is too far away to be held in microseconds.", "time_range")])
        near = pc.and_(pc.greater_equal(moments, _EARLIEST), pc.less_equal(moments, _LATEST))
        distant = pc.sum(pc.invert(near)).as_py() or 0
        if distant:
            if name is None:
                return None
            self._warnings[name] += Counter({_DISTANT: distant})
        return pc.if_else(near, moments, pa.scalar(None, pa.int64())).cast(TIME)

    def _without_nul(self, name: str | None, values: pa.Array) -> pa.Array | None:
        bad = pc.match_substring(values, "\0")  # Postgres cannot hold it
        if pc.any(bad).as_py():
            if name is None:
                return None
            where = place("row", self.rows + pc.index(bad, True).as_py() + 1, "column", name)
            refuse([Fault(where, "The value holds the character U+0000.", "nul_character")])
        return values


def _key(plain_type: pa.DataType, values: pa.Array) -> tuple[pa.DataType, pa.DataType] | None:
    """Columns of one key are settled together."""
    data_type = values.type
    return (
        (plain_type, data_type)
        if pa.types.is_primitive(data_type) or pa.types.is_string(data_type) or pa.types.is_large_string(data_type)
        else None
    )


def plain(values: pa.Array) -> pa.Array:
    """Without dictionaries and extension types."""
    if isinstance(values, pa.ExtensionArray):
        return plain(values.storage)
    if pa.types.is_dictionary(values.type):
        return plain(values.dictionary_decode())
    if pa.types.is_duration(values.type):
        return pc.divide(values.cast(pa.int64()).cast(pa.float64()), _UNITS[values.type.unit])
    return values

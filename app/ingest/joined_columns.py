"""Many columns in one call of Arrow: a call costs microseconds, and a wide table has thousands of short columns."""

from collections.abc import Callable, Hashable, Sequence

import pyarrow as pa

SHORT_BYTES = 1 << 16
"""A longer column is processed alone: the calls take little of its time."""
JOINED_COLUMNS = 512
"""Limit on the columns that are joined."""


def in_groups(
    columns: Sequence[pa.Array],
    keys: Sequence[Hashable | None],
    process: Callable[[pa.Array, Sequence[int]], pa.Array | None],
) -> list[pa.Array]:
    """The result of `process(values, numbers)` for every column: those of one key are joined and processed in one call.

    numbers: those of the columns that are joined. Where the result for several is None they are processed one by one.
    keys: None for a column that is processed alone.
    """
    results: list[pa.Array] = [None] * len(columns)
    for numbers in _groups(columns, keys):
        if len(numbers) > 1:
            group = [columns[number] for number in numbers]
            joined = process(pa.concat_arrays(group), numbers)
            if joined is not None:
                for number, part in zip(numbers, _split(joined, group), strict=True):
                    results[number] = part
                continue
        for number in numbers:
            results[number] = process(columns[number], [number])
    return results


def _groups(columns: Sequence[pa.Array], keys: Sequence[Hashable | None]) -> list[list[int]]:
    """Numbers of the columns that are processed together."""
    groups: list[list[int]] = []
    open_groups: dict[Hashable, list[int]] = {}
    for number, (values, key) in enumerate(zip(columns, keys, strict=True)):
        group = open_groups.get(key)
        if key is None or values.nbytes > SHORT_BYTES:
            groups.append([number])
        elif group is None or len(group) == JOINED_COLUMNS:
            open_groups[key] = [number]
            groups.append(open_groups[key])
        else:
            group.append(number)
    return groups


def _split(joined: pa.Array, group: Sequence[pa.Array]) -> list[pa.Array]:
    parts, start = [], 0
    for values in group:
        parts.append(joined.slice(start, len(values)))
        start += len(values)
    return parts

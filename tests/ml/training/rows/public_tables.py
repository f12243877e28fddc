"""Twenty public tables that come with scikit-learn and statsmodels, and leaks that are planted into them."""

import importlib
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn import datasets

from app.ml.contract.columns import TableColumn
from app.ml.kinds.job import Sheet, Source
from app.ml.tables.column_sheet import describe
from app.ml.training.dry_run import row_look
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec

BUNDLED = {"breast_cancer": "target", "diabetes": "target", "digits": "target", "iris": "target", "wine": "target"}
OF_STATSMODELS = {
    "anes96": "vote",
    "cancer": "cancer",
    "ccard": "AVGEXP",
    "danish_data": "lrm",
    "elnino": "DEC",
    "engel": "foodexp",
    "fair": "affairs",
    "grunfeld": "invest",
    "interest_inflation": "R",
    "macrodata": "unemp",
    "modechoice": "choice",
    "nile": "volume",
    "star98": "NABOVE",
    "statecrime": "murder",
    "sunspots": "SUNACTIVITY",
}
TABLES = {**BUNDLED, **OF_STATSMODELS}
"""The target of each table."""


@cache
def frame(name):
    if name in BUNDLED:
        table = getattr(datasets, f"load_{name}")(as_frame=True).frame
        return table if name == "diabetes" else table.assign(target=table["target"].map("class {}".format))
    return importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data.reset_index(drop=True)


def to_arrow(table):
    def column(values):
        cells = pa.array(values, from_pandas=True)
        if pa.types.is_temporal(cells.type):
            return cells.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        return cells.cast(pa.string()) if pa.types.is_large_string(cells.type) else cells

    return pa.table({str(name): column(table[name]) for name in table})


def sheet_of(table):
    def column(name):
        chunks = table.column(name).chunks
        sheet = describe(name, table.column(name).type, lambda: iter(chunks))
        ends = (end if isinstance(end, float) else None for end in (sheet.minimum, sheet.maximum))
        return TableColumn(name, sheet.kind, sheet.missing, sheet.distinct, sheet.identifier_like, *ends)

    return Sheet("sha256:0", table.num_rows, tuple(map(column, table.column_names)))


def warnings_of(table, target, **spec):
    """Warnings of the plan of a training, and those of a dry run about its rows."""
    table = to_arrow(table)
    sheet = sheet_of(table)
    spec = TrainSpec.model_validate({"algorithm": {"name": "decision_tree"}, "target": target} | spec)
    planned = plan(spec, sheet.columns, sheet.rows)
    return list(planned.warnings), row_look(planned, spec.kinds)(Source(sheet, iter([table])))


def has_numbers(table, target):
    return pd.api.types.is_numeric_dtype(table[target]) and not set(table[target].unique()) <= {0, 1}


class Leak(NamedTuple):
    plant: Callable
    """Maps a table, the name of its target and a generator to the table with the leak."""
    words: tuple[str, ...]
    """All are in the warning."""
    fits: Callable = lambda _table, _target: True
    spec: dict = {}


def _noisy(table, target, rng):
    y = table[target]
    if has_numbers(table, target):
        return table.assign(leak=y + rng.normal(size=len(y)) * y.std() / 10)
    codes, classes = pd.factorize(y, sort=True)
    flipped = np.where(rng.random(len(y)) < 0.01, rng.integers(0, len(classes), len(y)), codes)
    return table.assign(leak=flipped + 0.9 * rng.random(len(y)))


def _copied(table, target, rng):
    codes = pd.factorize(table[target])[0]
    return table.assign(leak=table[target] if has_numbers(table, target) else [f"no {code}" for code in codes])


def _copied_in_part(table, target, rng):
    copied = _copied(table, target, rng)
    return copied.assign(leak=copied["leak"].where(rng.random(len(table)) < 0.6))


def _parted(table, target, rng):
    part = table[target] * rng.uniform(0.2, 0.8, len(table)) + rng.normal(size=len(table))
    return table.assign(part=part, rest=table[target] - part)


def _timed(table, target, rng):
    seen = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400 * 86_400, len(table)), unit="s")
    later = seen + pd.to_timedelta(rng.integers(3_600, 30 * 86_400, len(table)), unit="s")
    return table.assign(seen=seen, settled=later)


def _timed_in_numbers(table, target, rng):
    seen = rng.integers(0, 10**6, len(table))
    return table.assign(seen=seen, settled=seen + rng.integers(1, 1_000, len(table)))


def _duplicated(table, target, rng):
    again = rng.choice(len(table), len(table) // 5, replace=False)
    return table.iloc[rng.permutation([*range(len(table)), *again])]


def _nearly_duplicated(table, target, rng):
    """A fifth of the rows once more, each number of which is moved by a ten-thousandth of its spread."""
    again = table.iloc[rng.choice(len(table), len(table) // 5, replace=False)]
    spreads = {name: again[name].std() for name in again if pd.api.types.is_numeric_dtype(again[name])}
    if not has_numbers(table, target):
        spreads.pop(target, None)
    noise = {name: again[name] + 1e-4 * spread * rng.normal(size=len(again)) for name, spread in spreads.items()}
    return pd.concat([table, again.assign(**noise)]).sample(frac=1, random_state=0)


def _has_fine_columns(table, target):
    """True if rows that lie near can be distinguished from copies."""
    return len(table) > 50 and sum(table[name].nunique() > 20 for name in table if name != target) >= 3


def _grouped(table, target, rng):
    """Four rows each of a quarter of the rows, alike but not equal, with the name of what they are of."""
    drawn = rng.choice(len(table), max(12, len(table) // 4), replace=False)
    rows = table.iloc[np.repeat(drawn, 4)].reset_index(drop=True)
    noise = {
        name: rows[name] + rng.normal(size=len(rows)) * rows[name].std() / 10
        for name in rows
        if pd.api.types.is_float_dtype(rows[name]) and (name != target or has_numbers(rows, target))
    }
    return rows.assign(**noise, thing=[f"g{code}" for code in np.repeat(drawn, 4)]).sample(frac=1, random_state=0)


def _rarefied(table, target, rng):
    codes = pd.factorize(table[target])[0]
    rare = np.flatnonzero(codes == codes.max())
    return table.drop(index=table.index[rare[max(2, int(0.007 * (len(table) - rare.size))) :]])


LEAKS = {
    "nearly determines": Leak(_noisy, ("'leak'", "nearly determines", "%", "leave it out of features")),
    "copy": Leak(_copied, ("Column 'leak'", "the target", "Leave it out of features")),
    "copy in part": Leak(_copied_in_part, ("Column 'leak'", "the target", "Leave it out of features")),
    "other units": Leak(
        lambda table, target, _: table.assign(leak=32 + 0.4536 * table[target]), ("'leak' is the target",), has_numbers
    ),
    "other scale": Leak(
        lambda table, target, _: table.assign(leak=np.log1p(table[target] - table[target].min())),
        ("'leak'", "nearly determines"),
        has_numbers,
    ),
    "sum of two": Leak(_parted, ("'part' plus 'rest'", "Leave them out of features"), has_numbers),
    "later dates": Leak(_timed, ("'settled' (in 100% of the rows) is later than 'seen'",)),
    "later than the time": Leak(_timed, ("'settled'", "later than 'seen'"), spec={"validation": {"time": "seen"}}),
    "later numbers": Leak(_timed_in_numbers, ("'settled'", "than 'seen'"), spec={"validation": {"time": "seen"}}),
    "mixed row numbers": Leak(
        lambda table, _, rng: table.assign(number_of=1_000 + rng.permutation(len(table))), ("'number_of'", "identifier")
    ),
    "long numbers": Leak(
        lambda table, _, rng: table.assign(no=10**8 + 100 * rng.choice(8 * 10**6, len(table), replace=False)),
        ("'no' looks like an identifier",),
    ),
    "words": Leak(
        lambda table, _, rng: table.assign(word=[f"k{code}" for code in rng.permutation(len(table))]),
        ("'word'", "left out"),
    ),
    "duplicates": Leak(_duplicated, ("test rows equal a training row", "remove copies")),
    "near duplicates": Leak(
        _nearly_duplicated, ("another row but for a little noise", "remove them"), _has_fine_columns
    ),
    "copy with noise": Leak(
        lambda table, target, rng: table.assign(leak=table[target] * (1 + 1e-4 * rng.normal(size=len(table)))),
        ("'leak'", "nearly determines"),
        has_numbers,
    ),
    "groups": Leak(_grouped, ("'thing'", "set validation.group to"), lambda table, _: table.shape[1] > 2),
    "named groups": Leak(
        lambda *of: _grouped(*of).rename(columns={"thing": "patient_id"}), ("set validation.group to 'patient_id'",)
    ),
    "rare class": Leak(
        _rarefied,
        ("less than 1 %", "class_weight"),
        lambda table, target: not has_numbers(table, target) and len(table) > 400,
    ),
}


def misses(name):
    """The leaks that no warning names once they are planted into the table."""
    table, target = frame(name), TABLES[name]
    missed = []
    for kind, leak in LEAKS.items():
        if leak.fits(table, target):
            planted = leak.plant(table, target, np.random.default_rng(3))
            warnings = [text for part in warnings_of(planted, target, **leak.spec) for text in part]
            if not any(all(word in text for word in leak.words) for text in warnings):
                missed.append(kind)
    return missed

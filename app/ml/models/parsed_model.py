"""A model of another library as its file was parsed, on its way from the process that parsed it."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from app.ml.algorithms.imported_trees import ImportedTrees, State
from app.ml.contract.algorithm import Matrix, Task
from app.ml.models import safetensors_format, state_format

Arrays = dict[str, NDArray[Any]]


class ParsedColumn(NamedTuple):
    """A column that the trees compare."""

    name: str
    levels: tuple[str, ...] | None = None
    """Categories by code; None: a number."""
    source_kind: str | None = None
    """numeric or boolean, where the levels are texts of such values."""
    codes_only: bool = False
    """The file has codes, and no names, of the levels."""


class Probes(NamedTuple):
    """Rows near the thresholds, and the predictions of the reference: treelite's general inference (GTIL)."""

    x: Matrix
    """(n, d) the matrix of the algorithm; of a category the code, and the last code for all others."""
    sums: Matrix
    """(n, k) before the transform."""
    predictions: Matrix
    """(n, k) after it."""


class ParsedModel(NamedTuple):
    params: ImportedTrees
    state: State
    task: Task
    columns: tuple[ParsedColumn, ...]
    probes: Probes
    parser: str
    """Name and version of the library that parsed it."""
    warnings: tuple[str, ...] = ()


def write(parsed: ParsedModel) -> bytes:
    arrays: Arrays = {}
    document = {
        "params": parsed.params.model_dump(mode="json"),
        "state": state_format.pack(parsed.state, "state", arrays),
        "task": str(parsed.task),
        "columns": [list(column) for column in parsed.columns],
        "probes": state_format.pack(parsed.probes, "probes", arrays),
        "parser": parsed.parser,
        "warnings": list(parsed.warnings),
    }
    return safetensors_format.write(document, arrays)


def read(blob: bytes) -> ParsedModel:
    """Raises CorruptModel for what `write` did not write, and ValueError."""
    document, arrays = safetensors_format.read(blob)
    columns = [(name, levels and tuple(levels), *rest) for name, levels, *rest in document["columns"]]
    return ParsedModel(
        ImportedTrees.model_validate(document["params"]),
        state_format.unpack(State, document["state"], arrays),
        Task(document["task"]),
        tuple(ParsedColumn(*column) for column in columns),
        state_format.unpack(Probes, document["probes"], arrays),
        document["parser"],
        tuple(document["warnings"]),
    )

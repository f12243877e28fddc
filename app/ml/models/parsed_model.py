"""A model of another library as its file was parsed, on its way from the process that parsed it."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Matrix, Task
from app.ml.contract.labels import Class
from app.ml.models import safetensors_format, state_format
from app.ml.numerics.class_probabilities.link_functions import LinkedSums

Arrays = dict[str, NDArray[Any]]


class ParsedColumn(NamedTuple):
    """A column that the model reads."""

    name: str
    levels: tuple[str, ...] | None = None
    """Categories by code; None: a number."""
    source_kind: str | None = None
    """numeric or boolean, where the levels are texts of such values."""
    codes_only: bool = False
    """The file has codes, and no names, of the levels."""
    nullable: bool = True
    """False: a row may not leave it null."""
    fill: float | None = None
    """Stands for a missing number; None: the algorithm takes those, or there are none."""
    demands_names: bool = False
    """The levels are codes, and the file's names of them are not to be trusted: the request has to name them all."""


class Probes(NamedTuple):
    """Rows, and the predictions of a reference: treelite's general inference (GTIL), or the library itself."""

    x: Matrix
    """(n, d) the matrix of the algorithm; of a category the code, and the last code for all others."""
    sums: Matrix
    """(n, k) before the transform."""
    predictions: Matrix
    """(n, k) after it."""


class ParsedModel(NamedTuple):
    algorithm: str
    """Its name in the catalogue."""
    params: LinkedSums
    state: Any
    task: Task
    columns: tuple[ParsedColumn, ...]
    probes: Probes
    parser: str
    """Name and version of the library that parsed it."""
    warnings: tuple[str, ...] = ()
    classes: tuple[Class, ...] | None = None
    """Labels of the classes, in the order of the outputs; None: the file does not name them."""

    @property
    def outputs(self) -> int:
        """Numbers that it computes for a row."""
        return int(self.probes.sums.shape[1])

    @property
    def trees(self) -> Any:
        """The state of trees; None: it is something else."""
        return self.state if self.algorithm == "imported_trees" else None

    @property
    def terms(self) -> int:
        """Terms of a sum at most, beside its constant."""
        if self.trees:
            return int(self.state.output.size)
        return int(self.state.coef.shape[0]) if self.algorithm == "imported_linear" else 1


def write(parsed: ParsedModel) -> bytes:
    arrays: Arrays = {}
    document = {
        "algorithm": parsed.algorithm,
        "params": parsed.params.model_dump(mode="json"),
        "state": state_format.pack(parsed.state, "state", arrays),
        "task": str(parsed.task),
        "columns": [list(column) for column in parsed.columns],
        "probes": state_format.pack(parsed.probes, "probes", arrays),
        "parser": parsed.parser,
        "warnings": list(parsed.warnings),
        "classes": parsed.classes and list(parsed.classes),
    }
    return safetensors_format.write(document, arrays)


def read(blob: bytes) -> ParsedModel:
    """Raises CorruptModel for what `write` did not write, and ValueError."""
    document, arrays = safetensors_format.read(blob)
    algorithm = find(document["algorithm"]).algorithm
    columns = [(name, levels and tuple(levels), *fields) for name, levels, *fields in document["columns"]]
    return ParsedModel(
        document["algorithm"],
        algorithm.params.model_validate(document["params"]),
        state_format.unpack(algorithm.state, document["state"], arrays),
        Task(document["task"]),
        tuple(ParsedColumn(*column) for column in columns),
        state_format.unpack(Probes, document["probes"], arrays),
        document["parser"],
        tuple(document["warnings"]),
        document["classes"] and tuple(document["classes"]),
    )

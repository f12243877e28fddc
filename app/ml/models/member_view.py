"""The view of a stored model on the rows of a committee: its inputs, and the names of its predictions there.

The committee's rows are its raw matrix: for categories the codes of its own levels, and one more for any other value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from app.ml.contract.algorithm import JSON, Labels, Matrix, Vector
from app.ml.contract.columns import InputColumn
from app.ml.contract.tensor_graph import Tensor
from app.ml.models import calibrators
from app.ml.models.calibrators import Calibrators
from app.ml.numerics.tensor_graphs.class_tensors import spread_columns
from app.ml.preparation.arrow_columns import UNSEEN
from app.ml.preparation.functions import Function
from app.ml.preparation.matrix_tensors import matrix_tensor
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.request import Linearising
from app.ml.preparation.state import PreparationState
from app.ml.preparation.stored_state_checks import checked
from app.ml.preparation.target_encoding import Encoding

FILLS = ".fills"
"""In the names of arrays that stand for missing values of named columns: such models have a format of their own."""
ENCODED = ".encoded."
"""In the names of arrays that stand for categories: models with any have a format of their own."""
BEHIND = ".view.behind"
"""In the names of arrays of a member behind a projection: committees with any have a format of their own."""
_FUNCTIONS: TypeAdapter[tuple[Function, ...]] = TypeAdapter(tuple[Function, ...])
LINEARISING: TypeAdapter[Linearising] = TypeAdapter(Linearising)


@dataclass(frozen=True)
class View:
    preparation: Preparation
    """The model's own."""
    linearising: Linearising
    """The function of the target that it was fitted to."""
    places: Labels
    """(p,) of its inputs among the committee's."""
    codes: tuple[Vector, ...]
    """(p,) of each: its own code for every one of the committee's; none of numbers."""
    classes: Labels
    """(k,) of its classes among the committee's; none of numbers."""
    width: int
    """Classes of the committee."""
    calibrators: Calibrators = ()
    """The model's own, which its algorithm here has applied."""

    @classmethod
    def of(
        cls,
        preparation: Preparation,
        linearising: Linearising,
        team: Preparation,
        classes: Labels,
        k: int,
        *,
        calibrators: Calibrators = (),
    ) -> Self:
        """classes, k: as `classes` and `width`."""
        names = [column.name for column in team.inputs]
        places = np.array([names.index(column.name) for column in preparation.inputs], np.intp)
        others = [team.inputs[place].levels for place in places]
        level_codes = preparation.codes
        codes = tuple(
            np.zeros(0) if other is None else level_codes.of(place, other) for place, other in enumerate(others)
        )
        return cls(preparation, linearising, places, codes, classes, k, calibrators)

    def matrix(self, x: Matrix) -> Matrix:
        """The model's inputs among the committee's rows (n, d)."""
        raw = x[:, self.places]
        for column, codes in zip(raw.T, self.codes, strict=True):
            if codes.size:
                there = ~np.isnan(column)
                code_places = np.where(column[there] == UNSEEN, codes.size - 1, column[there])
                column[there] = codes.take(code_places.astype(np.intp), mode="clip")
        return self.preparation.matrix(raw)

    def predictions(self, result: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers (n,) as they are; probabilities in the order of the committee's classes."""
        if result.ndim == 1:
            return result
        named = np.zeros((len(result), self.width))
        named[:, self.classes] = result
        return named

    def to_tensor(self, x: Tensor, predict: Callable[[Tensor], Tensor]) -> Tensor:
        """(n, k) `predictions` of what `predict` makes of the `matrix`."""
        columns = []
        for place, codes in zip(self.places.tolist(), self.codes, strict=True):
            column = x[[place]]
            if codes.size:
                last = float(codes.size - 1)
                code = x.graph.constant(last).where(column.combine("Equal", UNSEEN), column).combine("Min", last)
                mapped = code.where(~column.apply("IsNaN"), 0.0).to_integers().among(codes)
                column = column.where(column.apply("IsNaN"), mapped)
            columns.append(column)
        raw = columns[0].beside(*columns[1:])
        result = predict(matrix_tensor(self.preparation, raw))
        return result if not self.width else spread_columns(result, self.classes, self.width)

    def packed(self, path: str, arrays: dict[str, NDArray[Any]]) -> JSON:
        """The view as JSON; its arrays go into `arrays` under this path."""
        named_arrays = {**self.preparation.learned._asdict(), "places": self.places, "classes": self.classes}
        named_arrays |= {f"codes.{place}": codes for place, codes in enumerate(self.codes)}
        arrays |= {f"{path}.{name}": array for name, array in named_arrays.items()}
        result = described(self.preparation, path, arrays) | calibrators.packed(self.calibrators, f"{path}.", arrays)
        return {"path": path, "linearising": self.linearising, "width": self.width} | result

    @classmethod
    def unpacked(cls, document: JSON, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Raises KeyError, TypeError or ValueError for what was not packed so."""
        path, inputs = document["path"], inputs_of(document)
        learned = PreparationState(*(arrays[f"{path}.{name}"] for name in PreparationState._fields))
        codes = tuple(arrays[f"{path}.codes.{place}"] for place in range(len(inputs)))
        view = cls(
            restored(document, inputs, learned, arrays),
            LINEARISING.validate_python(document["linearising"]),
            arrays[f"{path}.places"],
            codes,
            arrays[f"{path}.classes"],
            is_(document["width"], int),
            calibrators.unpacked(document, f"{path}.", arrays, arrays[f"{path}.classes"].size),
        )
        if not view._is_sound():
            raise ValueError("a view leads nowhere")
        return view

    def _is_sound(self) -> bool:
        """True if all that is looked up is there: some of it in compiled code, which does not look."""
        whole = all(array.dtype == np.intp and array.ndim == 1 for array in (self.places, self.classes))
        if not whole or self.places.size != len(self.codes) or self.places.min(initial=0) < 0:
            return False
        counts = self.preparation.codes.counts.tolist()
        for column, codes, count in zip(self.preparation.inputs, self.codes, counts, strict=True):
            if codes.dtype != np.float64 or codes.ndim != 1 or bool(codes.size) == (column.levels is None):
                return False
            if not np.isin(codes, np.arange(UNSEEN, count)).all():
                return False
        return not self.classes.size or 0 <= self.classes.min() <= self.classes.max() < self.width


def common(inputs: Sequence[Sequence[InputColumn]]) -> Preparation:
    """The inputs of a committee: every input of its members, the ranges and levels of all; nothing is scaled."""
    by_name: dict[str, InputColumn] = {}
    for column in (column for model_inputs in inputs for column in model_inputs):
        by_name[column.name] = _both(by_name.get(column.name, column), column)
    columns = tuple(by_name.values())
    categorical, numbers = np.array([column.levels is not None for column in columns]), np.zeros(len(columns))
    learned = PreparationState(numbers, numbers, numbers + 1, categorical, categorical)
    return checked(Preparation(columns, learned, keeps_missing=True, keeps_categories=True))


def _both(first: InputColumn, other: InputColumn) -> InputColumn:
    """Raises ValueError where they are of two kinds."""
    if first.kind != other.kind:
        raise ValueError(f"{first.kind} here and {other.kind} there")
    return InputColumn(
        name=first.name,
        kind=first.kind,
        minimum=min((c.minimum for c in (first, other) if c.minimum is not None), default=None),
        maximum=max((c.maximum for c in (first, other) if c.maximum is not None), default=None),
        levels=None if first.levels is None else [*dict.fromkeys([*first.levels, *(other.levels or ())])],
        nullable=first.nullable and other.nullable,
        complete=True if first.complete and other.complete else None,
        notation=first.notation if first.notation == other.notation else None,
        source_kind=first.source_kind if first.source_kind == other.source_kind else None,
    )


def described(preparation: Preparation, path: str, arrays: dict[str, NDArray[Any]]) -> dict[str, JSON]:
    """All but what it has learned; the arrays of its encodings go into `arrays` under this path."""
    encodings: list[dict[str, Any]] = [
        {"place": encoding.place, "suffixes": list(encoding.suffixes), "values": f"{path}{ENCODED}{number}"}
        for number, encoding in enumerate(preparation.encodings)
    ]
    arrays |= {
        result["values"]: encoding.values for result, encoding in zip(encodings, preparation.encodings, strict=True)
    }
    if preparation.fills is not None:
        arrays[f"{path}{FILLS}"] = preparation.fills
    return {
        **({"encodings": encodings} if encodings else {}),
        **({"fills": f"{path}{FILLS}"} if preparation.fills is not None else {}),
        "inputs": [
            column.model_dump(mode="json", exclude=None if column.role else {"role"}) for column in preparation.inputs
        ],
        "keeps": {
            "missing": preparation.keeps_missing,
            "categories": preparation.keeps_categories,
            "inputs": preparation.keeps_inputs,
        },
        "functions": [function.model_dump(mode="json") for function in preparation.functions],
    }


def inputs_of(document: JSON) -> tuple[InputColumn, ...]:
    """The inputs that were described. Raises as `restored`."""
    return tuple(InputColumn.model_validate(column) for column in is_(document["inputs"], list))


def restored(
    document: JSON, inputs: tuple[InputColumn, ...], learned: PreparationState, arrays: Mapping[str, NDArray[Any]]
) -> Preparation:
    """The preparation that was described. Raises KeyError, TypeError or ValueError for what is none."""
    preparation = Preparation(
        inputs,
        learned,
        keeps_missing=is_(document["keeps"]["missing"], bool),
        keeps_categories=is_(document["keeps"]["categories"], bool),
        keeps_inputs=is_(document["keeps"]["inputs"], bool),
        functions=_FUNCTIONS.validate_python(document["functions"]),
        encodings=tuple(_encoding(result, arrays) for result in is_(document.get("encodings", []), list)),
        fills=arrays[is_(document["fills"], str)] if "fills" in document else None,
    )
    return checked(preparation)


def _encoding(result: JSON, arrays: Mapping[str, NDArray[Any]]) -> Encoding:
    suffixes = tuple(is_(suffix, str) for suffix in is_(result["suffixes"], list))
    return Encoding(is_(result["place"], int), suffixes, arrays[result["values"]])


def is_(value: JSON, kind: Any) -> Any:
    """The value; raises TypeError unless it is of this kind."""
    if not isinstance(value, kind):
        raise TypeError(type(value).__name__)
    return value

"""Tensors that a model takes and returns, as the Open Inference Protocol describes them."""

from collections.abc import Mapping

from app.formats.tensor_responses import Output, outputs
from app.formats.tensor_values import all_numbers
from app.ml.contract.columns import ColumnKind
from app.ml.models.included_outputs import with_outputs
from app.ml.models.model import Model
from app.schemas.open_inference import TensorMetadata, TensorParameters

MATRIX = "input-0"
PLATFORM = "valiant"
TENSOR_OF_KIND = {ColumnKind.NUMERIC: "FP64", ColumnKind.BOOLEAN: "BOOL"}


def inputs_of(model: Model) -> list[TensorMetadata]:
    """One matrix where all columns are numbers, else a tensor per column."""
    names = [column.name for column in model.inputs]
    if all_numbers(model.inputs) and MATRIX not in names:
        shape = [-1, len(names)]
        columns = TensorParameters(columns=names)
        return [TensorMetadata(name=MATRIX, datatype="FP64", shape=shape, parameters=columns)]
    kinds = [TENSOR_OF_KIND.get(ColumnKind(column.kind), "BYTES") for column in model.inputs]
    return [TensorMetadata(name=n, datatype=kind, shape=[-1]) for n, kind in zip(names, kinds, strict=True)]


def outputs_of(model: Model, names: Mapping[int, str]) -> list[TensorMetadata]:
    """Outputs as `infer` returns them: read off the prediction of a row of missing values. names: of clusters."""
    raw = model.preparation.no_values
    tensors = outputs(model, with_outputs(model, raw, model.predict_raw(raw), list(model.algorithm.outputs)), names)
    return [_described(output) for output in tensors]


def _described(output: Output) -> TensorMetadata:
    return TensorMetadata(
        name=output.name,
        datatype=output.datatype,
        shape=[-1, *output.values.shape[1:]],
        parameters=TensorParameters(labels=list(output.classes)) if output.classes else None,
    )

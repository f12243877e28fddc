"""Open Inference responses: predictions → the requested tensors, as JSON, binary, or both."""

from collections.abc import Collection, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from app.formats.prediction import Version
from app.formats.tensor_decoding import LENGTH, refused
from app.ml.contract.algorithm import Labels
from app.ml.models.model import Model, Predicted
from app.ml.preparation.flags import flag_texts
from app.schemas.open_inference import InferRequest, OutputChoice, Parameters

T = TypeVar("T")
ONE_OUTPUT = ("np", "pd")
"""Content types of requests by MLServer's codecs: they read one array, and a table of one value per row and output."""
FLAGS = "flags"
"""Output on request: the flags of each row."""
NEVER_OFFERED = ("classification", "shared_memory_region")
"""Parameters of other servers' extensions: they change the response, so they cannot be ignored."""
OF_DTYPE = {"b": "BOOL", "i": "INT64", "f": "FP64"}
DTYPES: dict[str, type[np.generic]] = {"BOOL": np.bool_, "INT64": np.int64, "FP64": np.float64}


class Output(NamedTuple):
    """A tensor of a response."""

    name: str
    datatype: str
    values: NDArray[Any]
    labels: Sequence[Any] = ()
    """Labels that the values of a tensor of BYTES index."""
    classes: Sequence[Any] = ()
    """Classes of the columns, where these are probabilities."""


class Inferred(NamedTuple):
    body: bytes
    json_bytes: int | None
    """Length of the JSON, after which binary tensors begin; None without any."""
    rows: int
    """That were predicted."""


def included(model: Model, request: InferRequest) -> list[str]:
    """Outputs beside the predictions that the request names."""
    return [output.name for output in request.outputs or () if output.name in model.algorithm.outputs]


def write(version: Version, model: Model, request: InferRequest, predicted: Predicted) -> Inferred:
    """The requested outputs. Raises InvalidTensor where there is no such output."""
    results, rows = outputs(model, predicted, version.names), len(predicted.values)
    document: dict[str, Any] = {"model_name": version.model, "model_version": str(version.version)}
    if request.id is not None:
        document["id"] = request.id
    if not request.outputs and request.parameters is None:
        document["outputs"] = list(map(_as_json, results))
        return Inferred(orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY), None, rows)
    if any(requested.name == FLAGS for requested in request.outputs or ()):
        results.append(flags_output(predicted))
    chosen = _requested(results, request, [*model.algorithm.outputs, FLAGS])
    parts = [_as_bytes(output) if binary else (_as_json(output), b"") for output, binary in chosen]
    document["outputs"] = [head for head, _ in parts]
    text = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    if not any(binary for _, binary in chosen):
        return Inferred(text, None, rows)
    return Inferred(b"".join([text, *(tail for _, tail in parts)]), len(text), rows)


def outputs(model: Model, predicted: Predicted, names: Mapping[int, str]) -> list[Output]:
    """The protocol has no null: a row that the model rejects gets its likeliest class, see `predict_proba`, and one of
    a cluster without a name an empty one. names: of clusters by their numbers.
    """
    predictions = _predictions(model, predicted)
    if names:
        predictions.append(_names(predicted, names))
    if predicted.outputs:
        predictions += (Output(name, OF_DTYPE[values.dtype.kind], values) for name, values in predicted.outputs.items())
    return predictions


def flags_output(predicted: Predicted) -> Output:
    """Texts of each row's flags, separated by spaces: a code, and the column after a colon; empty without any."""
    texts = [text or "" for text in flag_texts(predicted.flags, len(predicted.values))]
    labels = list(dict.fromkeys(texts))
    codes = {text: code for code, text in enumerate(labels)}
    return Output(FLAGS, "BYTES", np.array([codes[text] for text in texts], np.intp), labels)


def _names(predicted: Predicted, names: Mapping[int, str]) -> Output:
    places = {label: place for place, label in enumerate(names, 1)}
    numbers = np.array([places.get(label, 0) for label in predicted.predictions], np.intp)
    return Output("name", "BYTES", numbers, ["", *names.values()])


def _predictions(model: Model, predicted: Predicted) -> list[Output]:
    record = model.task.record
    if predicted.classes is None or record.datatype is not None:
        (name,), datatype = record.tensors, record.datatype or "FP64"
        return [Output(name, datatype, np.asarray(predicted.values, DTYPES[datatype]))]
    name, of_classes = record.tensors
    odds = Output(of_classes, "FP64", np.asarray(predicted.probabilities), classes=predicted.classes)
    labels = model.label_values
    if labels is None:
        return [Output(name, "BYTES", predicted.values, predicted.classes), odds]
    return [Output(name, OF_DTYPE[labels.dtype.kind], labels[predicted.values]), odds]


def _requested(outputs: Sequence[Output], request: InferRequest, offered: Collection[str]) -> list[tuple[Output, bool]]:
    """The requested outputs, in that order, and whether each is to be binary. offered: names of those on request."""
    as_bytes = _flag(request.parameters, "binary_data_output", "", otherwise=False)
    if not request.outputs:
        single = (request.parameters or {}).get("content_type") in ONE_OUTPUT
        return list(zip(outputs[:1] if single else outputs, repeat(as_bytes)))
    by_name = {output.name: output for output in outputs}
    if len({requested.name for requested in request.outputs}) < len(request.outputs):
        raise refused("/outputs", "An output is requested twice.")
    for i, requested in enumerate(request.outputs):
        if requested.name not in by_name:
            names = ", ".join(dict.fromkeys([*by_name, *offered]))
            raise refused(f"/outputs/{i}/name", f"The model's outputs are {names}.")
    return [_one(requested, by_name, f"/outputs/{i}", as_bytes) for i, requested in enumerate(request.outputs)]


def _one(requested: OutputChoice, offered: dict[str, Output], pointer: str, as_bytes: bool) -> tuple[Output, bool]:
    for name in NEVER_OFFERED:
        if name in (requested.parameters or {}):
            raise refused(f"{pointer}/parameters/{name}", "This extension of the protocol is not offered.")
    return offered[requested.name], _flag(requested.parameters, "binary_data", pointer, otherwise=as_bytes)


def _flag(parameters: Parameters | None, name: str, pointer: str, *, otherwise: bool) -> bool:
    value = (parameters or {}).get(name, otherwise)
    if not isinstance(value, bool):
        raise refused(f"{pointer}/parameters/{name}", "true or false is needed.")
    return value


def _as_json(output: Output) -> dict[str, Any]:
    name, datatype, values, labels, _ = output
    data = _each(labels, values) if labels else values.ravel()
    return {"name": name, "shape": values.shape, "datatype": datatype, "data": data}


def _as_bytes(output: Output) -> tuple[dict[str, Any], bytes]:
    """The tensor's part of the JSON, and its bytes after it."""
    name, datatype, values, labels, _ = output
    flat = values.ravel()
    tail = b"".join(_each(list(map(_length_prefixed, labels)), flat)) if labels else _little_endian(flat)
    head = {"name": name, "shape": values.shape, "datatype": datatype, "parameters": {"binary_data_size": len(tail)}}
    return head, tail


def _each(items: Sequence[T], places: Labels) -> list[T]:
    chosen: list[T] = np.array(items, np.object_)[places].tolist()
    return chosen


def _length_prefixed(text: str) -> bytes:
    code = text.encode()
    return LENGTH.pack(len(code)) + code


def _little_endian(flat: NDArray[Any]) -> bytes:
    return flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes()

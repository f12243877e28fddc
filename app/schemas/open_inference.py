"""The Open Inference Protocol v2 on the wire. Its own names, in its own order."""

from typing import Annotated, Any

from pydantic import Field, StrictInt

from app.base.wire import Body, Wire
from app.ml.contract.labels import Label

Shape = Annotated[list[Annotated[StrictInt, Field(ge=1, lt=2**31)]], Field(min_length=1, max_length=2)]
Parameters = dict[str, Any]


class ServerLiveness(Wire):
    """Liveness of the server."""

    live: bool = Field(description="True.")


class ServerReadiness(Wire):
    """Readiness of the server."""

    ready: bool = Field(description="True where the server is ready.")


class ServerMetadata(Wire):
    """Name, version and extensions of the server."""

    name: str = Field(description="Name of the server.")
    version: str = Field(description="Version of the server.")
    extensions: list[str] = Field(description="Extensions of the Open Inference Protocol that are served.")


class ModelReadiness(Wire):
    """Readiness of a model."""

    name: str = Field(description="Name of the model.")
    ready: bool = Field(description="True: the version is in memory.")


class TensorParameters(Wire):
    """Names along the second dimension of a tensor, in order."""

    columns: list[str] | None = Field(None, description="Names of the columns of an input matrix, in order.")
    labels: list[Label] | None = Field(None, description="Classes of the columns of `predict_proba`, in order.")


class TensorMetadata(Wire):
    """A tensor a model takes or gives; -1 stands for the number of rows."""

    name: str = Field(description="Name of the tensor.")
    datatype: str = Field(description="Data type of the Open Inference Protocol, such as FP64 or BYTES.")
    shape: list[int] = Field(description="Length of each dimension.")
    parameters: TensorParameters | None = Field(
        None, description="Names of the tensor's columns or classes; absent for a tensor of one value per row."
    )


class VersionParameters(Wire):
    """Facts of a version that `valiant serve` has read from a folder."""

    version: str = Field(description="Version as the folder or its settings name it, such as v0.1.0.")
    warnings: list[str] = Field(description="Differences from the library that wrote the file, such as trees left out.")
    iterations: str | None = Field(
        None,
        description="Boosting rounds that its settings choose, as a text: their number from the first, or `best`, up "
        "to the best one of early stopping; absent: all.",
    )


class ModelMetadata(Wire):
    """Inputs and outputs of a model."""

    name: str = Field(description="Name of the model.")
    versions: list[str] = Field(description="Versions of the model.")
    platform: str = Field(description="Platform of the Open Inference Protocol.")
    inputs: list[TensorMetadata] = Field(description="Inputs of the model, in its order.")
    outputs: list[TensorMetadata] = Field(description="Outputs of the model.")
    parameters: VersionParameters | None = Field(
        None, description="Facts of the version that predicts; absent unless it is served from a folder."
    )


class InferInput(Body):
    """One tensor: `data` nested or flat in row-major order, or `binary_data_size` bytes after the JSON."""

    name: str = Field(description="Name of an input, or any name for a matrix of all inputs.")
    shape: Shape = Field(description="Length of each dimension.")
    datatype: str = Field(description="BOOL, UINT8 to 64, INT8 to 64, FP16, FP32, FP64 or BYTES.")
    parameters: Parameters | None = Field(None, description="Optional parameters of the Open Inference Protocol.")
    data: list[Any] | None = Field(None, description="null is a missing value; integers have none.")


class OutputChoice(Body):
    """Output to return, by its name."""

    name: str = Field(description="Name of the output.")
    parameters: Parameters | None = Field(None, description="binary_data: whether it comes as bytes after the JSON.")


class InferRequest(Body):
    """One matrix (rows, columns) of any name, for models of numbers only, or one tensor per column, by its name."""

    id: str | None = Field(None, description="Identifier that the response repeats; null leaves it out.")
    model_name: str | None = Field(None, description="Sent by KServe's SDK; ignored, the address names the model.")
    model_version: str | None = Field(None, description="Sent by KServe's SDK; ignored, the address names the version.")
    parameters: Parameters | None = Field(
        None,
        description="binary_data_output: true returns all outputs as bytes after the JSON. content_type: `np` and "
        "`pd`, as MLServer's codecs send, return the first output only, unless `outputs` names others.",
    )
    inputs: list[InferInput] = Field(min_length=1, max_length=10_000, description="Input tensors.")
    outputs: list[OutputChoice] | None = Field(
        None,
        max_length=100,
        description="Outputs to return; null: the predictions. `flags`, on request, holds the flags of each row: a "
        "code and the column after a colon, such as `imputed:age`, separated by spaces; it is empty without any.",
    )


class InferOutput(Wire):
    """Output tensor, in row-major order; what is not finite is null."""

    name: str = Field(description="Name of the output.")
    shape: list[int] = Field(description="Length of each dimension.")
    datatype: str = Field(description="Data type of the Open Inference Protocol, such as FP64 or BYTES.")
    parameters: Parameters | None = Field(None, description="Optional parameters of the Open Inference Protocol.")
    data: list[Any] | None = Field(
        None, description="Values of the tensor; null where they come as bytes after the JSON."
    )


class InferResponse(Wire):
    """Response of the Open Inference Protocol."""

    model_name: str = Field(description="Name of the model.")
    model_version: str = Field(description="Version that predicted.")
    id: str | None = Field(None, description="Id of the request, repeated; null: it had none.")
    outputs: list[InferOutput] = Field(description="Output tensors, in the requested order.")

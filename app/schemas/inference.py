"""The Open Inference Protocol v2 on the wire. Its own names, in its own order."""

from typing import Annotated, Any

from pydantic import Field, StrictInt

from app.ml.contract.labels import Label
from app.wire import Body, Wire

Shape = Annotated[list[Annotated[StrictInt, Field(ge=1, lt=2**31)]], Field(min_length=1, max_length=2)]
Parameters = dict[str, Any]


class ServerLiveness(Wire):
    live: bool


class ServerReadiness(Wire):
    ready: bool


class ServerMetadata(Wire):
    """What serves, and which extensions of the protocol it knows."""

    name: str
    version: str
    extensions: list[str]


class ModelReadiness(Wire):
    name: str
    ready: bool


class TensorParameters(Wire):
    """Names along the second dimension of a tensor, in order."""

    columns: list[str] | None = Field(None, description="Names of the columns of an input matrix, in order.")
    labels: list[Label] | None = Field(None, description="Classes of the columns of `predict_proba`, in order.")


class TensorMetadata(Wire):
    """A tensor a model takes or gives; -1 stands for the number of rows."""

    name: str
    datatype: str
    shape: list[int]
    parameters: TensorParameters | None = Field(
        None, description="Names of the tensor's columns or classes; absent for a tensor of one value per row."
    )


class ModelMetadata(Wire):
    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class InferInput(Body):
    """One tensor: `data` nested or flat in row-major order, or `binary_data_size` bytes after the JSON."""

    name: str
    shape: Shape
    datatype: str = Field(description="BOOL, UINT8 to 64, INT8 to 64, FP16, FP32, FP64 or BYTES.")
    parameters: Parameters | None = None
    data: list[Any] | None = Field(None, description="null is a missing value; integers have none.")


class InferWanted(Body):
    """An output asked for by its name."""

    name: str
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
    inputs: list[InferInput] = Field(min_length=1, max_length=10_000)
    outputs: list[InferWanted] | None = Field(None, max_length=100, description="Absent: all.")


class InferOutput(Wire):
    """One tensor of the answer, in row-major order; what is not finite is null."""

    name: str
    shape: list[int]
    datatype: str
    parameters: Parameters | None = None
    data: list[Any] | None = Field(None, description="Absent where the tensor comes as bytes after the JSON.")


class InferAnswer(Wire):
    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferOutput]

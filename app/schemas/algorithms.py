"""The catalogue on the wire."""

from typing import Any, Literal

from pydantic import Field

from app.base.wire import Wire
from app.ml.catalogue.algorithm_files import every_entry
from app.ml.contract.task import Task
from app.ml.models.cluster_description import offered_outputs


class OutputCard(Wire):
    """Output beside the predictions."""

    name: str = Field(description="Name, as `include` of a prediction takes it.")
    description: str = Field(description="Meaning and unit.")
    shape: str = Field(
        description="Shape for n rows: `(n,)` is one value for each row, `(n, k)` a list of k values for each row."
    )


def output_cards(algorithm: str, task: str | None = None) -> list[OutputCard]:
    """Outputs of an algorithm of the catalogue, in one of its tasks; none of one that a later release has dropped."""
    entry = every_entry().get(algorithm)
    outputs = offered_outputs(entry.algorithm, None if task is None else Task(task)) if entry else {}
    return [
        OutputCard(name=name, description=outputs[name].description, shape=outputs[name].shape)
        for name in sorted(outputs)
    ]


class AlgorithmCard(Wire):
    """Purpose and parameters of an algorithm."""

    name: str = Field(description="Name of the algorithm, as a request gives it.")
    title: str = Field(description="Name and idea of the algorithm in one sentence.")
    other_names: list[str] = Field(
        [],
        description="Names that other libraries have for the algorithm, or for one that serves the same purpose, in "
        "lower case and without spaces, hyphens and underscores, such as `xgboost`.",
    )
    trainable: bool = Field(True, description="True if a training can choose it; false: its models are only imported.")
    exportable: bool = Field(
        False,
        description="True if its models can be exported as ONNX and as a script of numpy, as "
        "`GET /v1/models/{model}/versions/{version}/artifact?as=onnx` does; some parameters prevent it.",
    )
    tasks: list[str] = Field(description="Tasks that the algorithm can do.")
    targets: dict[str, Literal["never", "optional", "needed"]] = Field(
        description="Use of a target by task. `needed`: the fit learns from it; `optional`: predictions are compared "
        "with it, and the fit does not see it; `never`: it is refused."
    )
    gist: str = Field(description="Summary of the method in three sentences at most.")
    method: str | None = Field(
        None,
        description="Description of the method in full, with equations and conventions; only in "
        "`GET /v1/algorithms/{name}`.",
    )
    use_when: str = Field(description="Cases in which to choose it.")
    references: list[str] = Field(description="Books and papers that describe the algorithm.")
    family: str | None = Field(
        None,
        description="Family of a classifier: generative learns the density of each class, discriminative "
        "only the boundaries between classes. Null: it does not classify.",
    )
    scores: str | None = Field(
        None,
        description="Meaning of `probabilities` with default parameters. `probability`: estimates of P(class | row); "
        "`membership`: degrees between 0 and 1 that only state how clear a case is, for which reports give no log loss "
        "and no Brier score. Null: not a classifier.",
    )
    outputs: list[OutputCard] = Field(
        [], description="Further values of a row that a prediction includes on request; empty where there are none."
    )
    parameters: dict[str, Any] = Field(
        description="JSON Schema of the parameters beside `name`. One that is itself an algorithm refers to "
        "`Learner` in `/openapi.json`. Those that change a model most have `x-level` critical, those that hardly "
        "anyone sets expert."
    )


class AlgorithmPage(Wire):
    """Page of algorithms."""

    items: list[AlgorithmCard] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")

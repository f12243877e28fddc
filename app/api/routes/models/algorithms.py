"""The catalogue."""

import json
from functools import cache
from itertools import islice
from typing import Annotated, Any

from fastapi import Path
from pydantic.json_schema import GenerateJsonSchema

from app.api.edge.router import READ, Router
from app.api.params.common import Cursor, Limit
from app.base.other_names import OTHER_NAMES
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import every_entry, find
from app.ml.contract.algorithm import JSON, Algorithm, Params
from app.ml.contract.parameter_levels import level
from app.schemas.algorithms import AlgorithmCard, AlgorithmPage, output_cards

AlgorithmName = Annotated[str, Path(max_length=100, description="The algorithm's name.")]
router = Router(needs=READ, prefix="/v1/algorithms", tags=["algorithms"])


@router.get("")
async def list_algorithms(limit: Limit = 200, cursor: Cursor = None) -> AlgorithmPage:
    """List the algorithms in alphabetical order, without their `method`."""
    after = (name for name in every_entry() if cursor is None or name > cursor)
    cards = [_card(name).model_copy(update={"method": None}) for name in islice(after, limit + 1)]
    return AlgorithmPage(items=cards[:limit], next_cursor=cards[limit - 1].name if len(cards) > limit else None)


@router.get("/{name}")
async def get_algorithm(
    name: AlgorithmName,
) -> AlgorithmCard:
    """Describe one algorithm: its purpose, method, references and the JSON Schema of its parameters."""
    return _card(name)


@cache
def _card(name: str) -> AlgorithmCard:
    """Made once: the JSON Schema of an algorithm with learners within takes 0.1 s."""
    entry = find(name)
    algorithm = entry.algorithm
    classifies = any(task.of_classes for task in algorithm.tasks)
    return AlgorithmCard(
        name=entry.name,
        title=entry.title,
        other_names=sorted(name for name, own in OTHER_NAMES.items() if own == entry.name),
        trainable=algorithm.offered,
        exportable=algorithm.graph is not None,
        tasks=sorted(algorithm.tasks),
        targets={task: algorithm.target_use(task).value for task in sorted(algorithm.tasks)},
        gist=entry.gist,
        method=entry.method,
        use_when=entry.use_when,
        references=list(entry.references),
        family=("generative" if algorithm.generative else "discriminative") if classifies else None,
        scores=_scores(algorithm) if classifies else None,
        outputs=output_cards(entry.name),
        parameters=_parameters(algorithm.params),
    )


def _scores(algorithm: Algorithm[Any, Any]) -> str:
    return "membership" if nested.degrees(algorithm, algorithm.params()) else "probability"


class _Untitled(GenerateJsonSchema):
    """JSON Schema of fields without titles, which would repeat their names."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False


def _parameters(params: type[Params]) -> JSON:
    """The JSON Schema of the parameters. Learners within it refer to the OpenAPI document: written out, each would
    repeat the parameters of every algorithm.
    """
    schema = params.model_json_schema(schema_generator=_Untitled)
    definitions = schema.pop("$defs", {})
    if "Learner" in definitions:
        text = json.dumps(schema)
        used = [name for name in definitions if f'"#/$defs/{name}"' in text]
        definitions = {name: {"$ref": f"/openapi.json#/components/schemas/{name}"} for name in used}
    properties = {name: property_ | _level(name) for name, property_ in schema.get("properties", {}).items()}
    return schema | ({"properties": properties} if properties else {}) | ({"$defs": definitions} if definitions else {})


def _level(name: str) -> JSON:
    level_ = level(name)
    return {} if level_ == "secondary" else {"x-level": level_}

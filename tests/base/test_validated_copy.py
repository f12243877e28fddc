"""Copies of models with other values: no field takes what the constructor would refuse."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from app.base.settings import Settings
from app.base.validated_copy import ValidatedCopy
from app.base.wire import Wire
from app.schemas.keys import KeySpec, Scope

ROOT = Path(__file__).parents[2]


def subclasses(kind):
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def test_every_model_of_the_project_validates_its_copies():
    import app.main
    import workers.main

    del app, workers
    models = [
        each
        for each in subclasses(BaseModel)
        if each.__module__.partition(".")[0] in {"app", "workers"} and "[" not in each.__name__  # a base with its type
    ]
    assert len(models) > 200
    assert [each for each in models if each.model_copy is not ValidatedCopy.model_copy] == []


def test_nothing_goes_round_the_validation():
    """Neither by pydantic's own method nor by a model that is made without validation or changed where it is."""
    forbidden = re.compile(r"BaseModel\.model_copy|model_construct|__pydantic_validator__|object\.__setattr__")
    sources = [path for folder in ("app", "workers") for path in (ROOT / folder).rglob("*.py")]
    assert {str(path.relative_to(ROOT)) for path in sources if forbidden.search(path.read_text())} == {
        "app/base/validated_copy.py",
        "app/ml/models/cluster_description.py",  # reads one default of parameters that have required ones too
    }


def test_a_copy_has_the_types_of_its_fields():
    settings = Settings(port=1).model_copy(update={"database_url": "postgresql://v@h/v", "data": "folder"})
    assert settings.database_url == SecretStr("postgresql://v@h/v")
    assert settings.data == Path("folder")
    assert settings.port == 1


@pytest.mark.parametrize("update", [{"port": -1}, {"auth": "some"}, {"tls_cert": Path("c")}, {"cors_origins": "*"}])
def test_a_copy_that_the_constructor_would_refuse_is_refused(update):
    with pytest.raises(ValidationError):
        Settings().model_copy(update=update)


def test_a_copy_with_a_field_that_there_is_not_is_refused():
    with pytest.raises(TypeError, match="Settings has no field prot"):
        Settings().model_copy(update={"prot": 1})


def test_a_copy_knows_which_fields_were_set():
    spec = KeySpec(name="x", role="viewer").model_copy(update={"expires_in_days": 7})
    assert spec.model_fields_set == {"name", "role", "expires_in_days"}
    with pytest.raises(ValidationError, match="either role or scopes"):
        spec.model_copy(update={"scopes": [Scope.READ]})


def test_a_deep_copy_shares_nothing_with_its_model():
    class Numbers(Wire):
        name: str
        values: list[int]

    first = Numbers(name="a", values=[1])
    second = first.model_copy(update={"name": "b"}, deep=True)
    first.values.append(2)
    assert (second.name, second.values) == ("b", [1])

"""The budget is in bytes, and the least recently used leave first."""

import pytest

from app.ml.models.model import decode
from app.services.predictions.model_memory import ModelMemory


@pytest.fixture(scope="module")
def models(trained):
    return [decode(trained(seed=seed).blob) for seed in range(20)]


def test_ten_times_the_budget_stays_within_it(models):
    size = models[0].nbytes
    memory = ModelMemory(2 * size + size // 2)
    for i, model in enumerate(models):
        memory.put(str(i), model)
        assert memory.nbytes <= 2 * size + size // 2
    kept = [i for i in range(20) if memory.get(str(i)) is not None]
    assert kept == [18, 19]
    assert memory.nbytes == models[18].nbytes + models[19].nbytes


def test_the_least_recently_used_leaves(models):
    memory = ModelMemory(2 * models[0].nbytes + 100)
    memory.put("a", models[0])
    memory.put("b", models[1])
    assert memory.get("a") is models[0]
    memory.put("c", models[2])
    assert memory.get("b") is None
    assert memory.get("a") is models[0]
    assert memory.get("c") is models[2]


def test_what_is_larger_than_everything_is_not_kept(models):
    memory = ModelMemory(models[0].nbytes - 1)
    memory.put("a", models[0])
    assert memory.get("a") is None
    assert memory.nbytes == 0


def test_the_same_again_counts_once(models):
    memory = ModelMemory(10 * models[0].nbytes)
    memory.put("a", models[0])
    memory.put("a", models[0])
    assert memory.nbytes == models[0].nbytes


def test_a_model_knows_how_large_it_is(models, trained):
    assert models[0].nbytes >= len(trained().blob)
    forest = decode(trained("random_forest").blob)
    assert forest.nbytes >= sum(part.nbytes for part in forest.state.trees) + forest.state.trees.beside

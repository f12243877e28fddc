import pytest

from app.store.engine import make_engine


@pytest.mark.parametrize(("role", "size"), [("worker", 3 * 4 + 2), ("api", 7)])
def test_every_role_has_the_connections_it_can_use_and_no_more(settings, role, size):
    engine = make_engine(settings.model_copy(update={"worker_concurrency": 4, "database_pool": 7}), role=role)
    assert engine.pool.size() == size
    assert engine.pool._max_overflow == 0
    engine.dispose()

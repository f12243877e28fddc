import pytest
from sqlalchemy import text
from sqlalchemy.exc import DataError, OperationalError

from app.base.errors import DatasetNotFound
from app.store.base.new_ids import uuid7
from app.store.engine import driver_url, make_engine
from app.store.unit_of_work import WorkFactory


@pytest.fixture(scope="module")
def work(settings):
    made = WorkFactory(make_engine(settings, role="test"))
    yield made
    made.engine.dispose()


def end_connection(w):
    """What a restart of the server looks like to whoever is inside a transaction."""
    pid = w.session.scalar(text("select pg_backend_pid()"))
    with w.session.get_bind().connect() as other:
        other.execute(text("select pg_terminate_backend(:pid)"), {"pid": pid})


def test_leaving_the_block_commits_and_then_keeps_promises(work, add_iris):
    made = add_iris(work)
    order = []
    with work() as w:
        w.after_commit(lambda: order.append("after"))
        w.datasets.delete(made)
        order.append("inside")
    assert order == ["inside", "after"]
    with work() as w:
        assert w.datasets.find(made) is None


def test_an_exception_rolls_back_and_breaks_promises(work, add_iris):
    made, order = add_iris(work), []

    def fail():
        with work() as w:
            w.after_commit(lambda: order.append("after"))
            w.datasets.delete(made)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert order == []
    with work() as w:
        assert w.datasets.get(made).rows == 150


def test_a_lost_connection_is_tried_again(work):
    tries = []

    def decide(w):
        tries.append(w)
        if len(tries) == 1:
            end_connection(w)
        return w.session.scalar(text("select 42"))

    assert work.retry(decide) == 42
    assert len(tries) == 2


def test_trying_again_has_an_end(work):
    with pytest.raises(OperationalError):
        work.retry(end_connection_and_go_on, seconds=0.2)


def end_connection_and_go_on(w):
    end_connection(w)
    w.session.execute(text("select 1"))


def test_a_mistake_of_ours_is_not_tried_again(work):
    tries = []

    def decide(w):
        tries.append(w)
        w.session.execute(text("select 1 / 0"))

    with pytest.raises(DataError):
        work.retry(decide)
    assert len(tries) == 1


def test_a_failure_with_a_name_is_not_tried_again(work):
    with pytest.raises(DatasetNotFound):
        work.retry(lambda w: w.datasets.get(uuid7()))


def test_the_process_is_named_and_its_statements_bounded(work):
    with work() as w:
        shown = {name: w.session.scalar(text(f"show {name}")) for name in ("application_name", "timezone")}
        limits = [w.session.scalar(text(f"show {name}")) for name in ("lock_timeout", "statement_timeout")]
    assert shown == {"application_name": "valiant-test", "timezone": "UTC"}
    assert "0" not in limits


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_spelling_of_the_address_names_the_driver(scheme):
    assert driver_url(f"{scheme}://u:p@h:5432/d") == "postgresql+psycopg://u:p@h:5432/d"


def test_without_an_address_it_says_which_variable(settings):
    with pytest.raises(ValueError, match="VALIANT_DATABASE_URL"):
        make_engine(settings.model_copy(update={"database_url": None}), role="test")

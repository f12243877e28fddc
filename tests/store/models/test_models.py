"""The registry: numbers, bytes, pointers, aliases and their record."""

import hashlib
import threading
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError

from app.base.errors import AliasNotFound, InvalidRequest, ModelNotFound, VersionInUse, VersionNotFound
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.store.engine import make_engine
from app.store.models.pointer import Pointer
from app.store.unit_of_work import WorkFactory
from tests.ml.training.test_train import run


@pytest.fixture(scope="module")
def work(settings):
    opened = WorkFactory(make_engine(settings, role="api"))
    yield opened
    opened.engine.dispose()


@pytest.fixture
def name():
    return f"m-{uuid4()}"


def move(work, model, alias, version, request_id=None):
    with work() as w:
        w.aliases.lock(model, alias)
        return w.aliases.move(model, alias, version, request_id=request_id)


def pointed(work, model, **required):
    with work() as w:
        return w.aliases.pointer(model, **required).version


def test_a_version_is_what_its_bytes_say(work, publish, trained, name):
    made = trained()
    added = publish(work, name)
    with work() as w:
        assert w.models.version(name, 1) == added
        assert w.models.report(name, 1) == made.report
        assert w.models.golden(name, 1) == made.golden
    assert (added.model, added.version, added.algorithm, added.task) == (name, 1, "logistic", "classification")
    assert added.classes == ["setosa", "versicolor", "virginica"]
    assert [column.name for column in added.inputs] == ["length", "width", "size"]
    assert added.metrics == made.report.test
    assert added.dataset_digest == added.receipt["data_digest"]
    assert added.digest == f"sha256:{hashlib.sha256(made.blob).hexdigest()}"
    assert added.size_bytes == len(made.blob)


def test_a_version_is_described_without_its_whole_report(work, publish, name):
    publish(work, name)
    read = []
    with work() as w:
        event.listen(w.session.connection(), "before_cursor_execute", lambda *call: read.append(call[2]))
        found = w.models.version(name, 1)
        report = w.models.report(name, 1)
    assert (found.metrics, found.warnings) == (report.test, report.warnings)
    columns = read[0].partition("FROM")[0].split()
    assert "model_versions.digest," in columns
    assert not {"model_versions.report,", "model_versions.golden,"} & {*columns}


@pytest.mark.parametrize("size", [1e16, 1e300, 1e-300])
def test_golden_rows_of_any_size_are_served_when_they_come_back(work, name, size):
    table = pa.table({"x": [size * (i % 7) for i in range(40)], "y": [float(i % 7) for i in range(40)]})
    made = run(table, "decision_tree", target="y")
    with work() as w:
        w.models.add_version(
            model=name, job_id=uuid4(), dataset_id=uuid4(), blob=made.blob, report=made.report, golden=made.golden
        )
    with work() as w:
        check_golden(decode(made.blob), w.models.golden(name, 1))


@pytest.mark.parametrize("chunk_bytes", [1, 700, 10**6])
def test_chunks_add_up_to_the_bytes(work, publish, trained, name, chunk_bytes):
    blob = trained().blob
    chunk_bytes = max(chunk_bytes, len(blob) // 50)
    publish(work, name, chunk_bytes=chunk_bytes)
    count = -(-len(blob) // chunk_bytes)
    with work() as w:
        assert b"".join(w.models.chunk(name, 1, seq) for seq in range(count)) == blob
        with pytest.raises(VersionNotFound):
            w.models.chunk(name, 1, count)


def test_versions_count_up_even_when_many_publish_at_once(work, publish, name):
    numbers = []
    threads = [threading.Thread(target=lambda: numbers.append(publish(work, name).version)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 9))


def test_one_job_makes_one_version(work, trained, name):
    made, job = trained(), uuid4()

    def add(model):
        with work() as w:
            w.models.add_version(
                model=model, job_id=job, dataset_id=job, blob=made.blob, report=made.report, golden=made.golden
            )

    add(name)
    with pytest.raises(IntegrityError):
        add(f"{name}-2")
    with work() as w, pytest.raises(ModelNotFound):
        w.models.get(f"{name}-2")


def test_a_failed_transaction_leaves_nothing(work, trained, name):
    made = trained()

    def fail():
        with work() as w:
            w.models.add_version(
                model=name, job_id=uuid4(), dataset_id=uuid4(), blob=made.blob, report=made.report, golden=made.golden
            )
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with work() as w, pytest.raises(ModelNotFound):
        w.models.get(name)


def test_pointers(work, publish, name):
    for _ in range(3):
        publish(work, name)
    assert pointed(work, name) == 3
    assert pointed(work, name, version=2) == 2
    move(work, name, "canary", 2)
    assert pointed(work, name) == 3
    assert pointed(work, name, alias="canary") == 2
    move(work, name, "champion", 1)
    assert pointed(work, name) == 1
    assert pointed(work, name, alias="champion") == 1
    with work() as w:
        digest = w.models.version(name, 1).digest
        size = w.models.version(name, 1).size_bytes
        assert w.aliases.pointer(name) == Pointer(name, 1, digest, size, revision=1)


def test_what_is_not_there(work, publish, name):
    publish(work, name)
    with work() as w:
        for call, error in [
            (lambda: w.models.get("no-such"), ModelNotFound),
            (lambda: w.models.delete("no-such"), ModelNotFound),
            (lambda: w.models.version("no-such", 1), ModelNotFound),
            (lambda: w.aliases.pointer("no-such"), ModelNotFound),
            (lambda: w.aliases.pointer("no-such", version=1), ModelNotFound),
            (lambda: w.aliases.pointer("no-such", alias="a"), ModelNotFound),
            (lambda: w.aliases.history("no-such", "a", 10), ModelNotFound),
            (lambda: w.models.delete_version("no-such", 1), ModelNotFound),
            (lambda: w.models.version(name, 2), VersionNotFound),
            (lambda: w.models.report(name, 2), VersionNotFound),
            (lambda: w.aliases.pointer(name, version=2), VersionNotFound),
            (lambda: w.models.delete_version(name, 2), VersionNotFound),
            (lambda: w.aliases.move(name, "a", 2, request_id=None), VersionNotFound),
            (lambda: w.aliases.pointer(name, alias="a"), AliasNotFound),
            (lambda: w.aliases.history(name, "a", 10), AliasNotFound),
            (lambda: w.aliases.history(name, "a", 10, "x1"), InvalidRequest),
            (lambda: w.aliases.history(name, "a", 10, "9" * 30), InvalidRequest),
        ]:
            with pytest.raises(error):
                call()


def test_a_version_an_alias_points_at_stays(work, publish, name):
    publish(work, name)
    publish(work, name)
    move(work, name, "champion", 1)
    with pytest.raises(VersionInUse, match="champion"), work() as w:
        w.models.delete_version(name, 1)
    move(work, name, "champion", 2)
    with work() as w:
        w.models.delete_version(name, 1)
    with work() as w:
        assert w.models.get(name).versions == [2]


def test_numbers_and_etags_do_not_come_back(work, publish, name):
    publish(work, name)
    first = move(work, name, "champion", 1)
    with work() as w:
        w.models.delete(name)
    with work() as w:
        with pytest.raises(ModelNotFound):
            w.models.get(name)
        with pytest.raises(VersionNotFound):
            w.models.chunk(name, 1, 0)
        assert [record.version for record in w.aliases.history(name, "champion", 10).items] == [1]
    assert publish(work, name).version == 2
    assert move(work, name, "champion", 2).etag != first.etag
    with work() as w:
        assert [alias.version for alias in w.models.get(name).aliases] == [2]


def test_a_model_without_versions_is_gone(work, publish, name):
    publish(work, name)
    with work() as w:
        w.models.delete_version(name, 1)
    with work() as w, pytest.raises(ModelNotFound):
        w.models.get(name)
    with work() as w:
        assert name not in [model.name for model in w.models.page(200).items]


def test_history_page_by_page(work, publish, name):
    publish(work, name)
    publish(work, name)
    for i, version in enumerate([1, 2, 1, 1, 2]):
        move(work, name, "champion", version, request_id=f"r{i}")
    with work() as w:
        whole = w.aliases.history(name, "champion", 10)
        assert whole.next_cursor is None
        assert [(r.version, r.previous_version, r.request_id) for r in whole.items] == [
            (2, 1, "r4"), (1, 1, "r3"), (1, 2, "r2"), (2, 1, "r1"), (1, None, "r0"),
        ]  # fmt: skip
        first = w.aliases.history(name, "champion", 3)
        rest = w.aliases.history(name, "champion", 3, first.next_cursor)
        assert first.items + rest.items == whole.items
        assert rest.next_cursor is None


def test_models_page_by_page(work, publish):
    prefix = f"p-{uuid4()}"
    names = [f"{prefix}-{i}" for i in range(5)]
    for name in reversed(names):
        publish(work, name)
    seen, cursor = [], prefix
    while cursor is not None:
        with work() as w:
            page = w.models.page(2, cursor)
        assert len(page.items) <= 2
        seen += [model.name for model in page.items if model.name.startswith(prefix)]
        cursor = page.next_cursor
    assert seen == names


class Registry(RuleBasedStateMachine):
    """Against a plain dictionary: whatever is published, moved and deleted, a number never changes its meaning."""

    work = publish = trained = None

    def __init__(self):
        super().__init__()
        self.name = f"r-{uuid4()}"
        self.last = 0
        self.versions = {}
        self.aliases = {}

    @rule(seed=st.integers(0, 2))
    def publish_one(self, seed):
        added = self.publish(self.work, self.name, seed=seed)
        self.last += 1
        assert added.version == self.last
        self.versions[self.last] = added.digest

    @rule(alias=st.sampled_from(["champion", "canary"]), version=st.integers(1, 6))
    def move_alias(self, alias, version):
        if version in self.versions:
            assert move(self.work, self.name, alias, version).version == version
            self.aliases[alias] = version
        else:
            with pytest.raises((VersionNotFound, ModelNotFound)):
                move(self.work, self.name, alias, version)

    @rule(version=st.integers(1, 6))
    def delete_version(self, version):
        expected = VersionInUse if version in self.aliases.values() else (VersionNotFound, ModelNotFound)
        if version in self.versions and version not in self.aliases.values():
            with self.work() as w:
                w.models.delete_version(self.name, version)
            del self.versions[version]
        else:
            with pytest.raises(expected), self.work() as w:
                w.models.delete_version(self.name, version)

    @rule()
    def delete(self):
        if self.versions:
            with self.work() as w:
                w.models.delete(self.name)
            self.versions, self.aliases = {}, {}

    @invariant()
    def reads_agree(self):
        with self.work() as w:
            for version in range(1, self.last + 1):
                if version in self.versions:
                    assert w.aliases.pointer(self.name, version=version).digest == self.versions[version]
                else:
                    with pytest.raises((VersionNotFound, ModelNotFound)):
                        w.aliases.pointer(self.name, version=version)
            if self.versions:
                found = w.models.get(self.name)
                assert found.versions == sorted(self.versions)
                assert {alias.alias: alias.version for alias in found.aliases} == self.aliases
                best = self.aliases.get("champion", max(self.versions))
                assert w.aliases.pointer(self.name).version == best
            else:
                with pytest.raises(ModelNotFound):
                    w.models.get(self.name)


def test_publish_read_delete_in_any_order(work, publish):
    machine = type("Bound", (Registry,), {"work": work, "publish": staticmethod(publish)})
    run_state_machine_as_test(
        machine,
        settings=budget(
            max_examples=12, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )

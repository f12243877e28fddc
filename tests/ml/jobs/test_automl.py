"""The best model within a budget: order and determinism of units, honest metrics, refusals, a budget that is kept."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from app.base.errors import InvalidRequest
from app.ml.contract.progress import unheard
from app.ml.contract.timed_tasks import Timed
from app.ml.jobs.automl import KIND, AutomlRequest
from app.ml.kinds.job import Inputs, JobContext, Source
from app.ml.kinds.journal import NoJournal, StoredParts, StoredUnit
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.ml.training.automl.ensemble_weights import Pool
from app.ml.training.automl.honest_estimate import bias_corrected
from app.ml.training.automl.leaderboard import Comparison
from app.ml.training.automl.time_budget import TimeBudget
from app.ml.training.automl.wave_order import WAVE, Rung, Unit, WaveOrder, rungs
from tests.ml.jobs.test_evaluate import NOWHERE, sheet

CHEAP = ["logistic", "generative_bayes", "knn", "ridge", "lasso", "decision_tree"]


def request(**changes):
    body = {"dataset": NOWHERE, "target": "y", "model": "m", "units": 24, "include": CHEAP, "validation": {"folds": 3}}
    return AutomlRequest.model_validate(body | changes)


def searched(table, each_within=None, journal=None, **changes):
    requested, context = request(**changes), JobContext((sheet(table),))
    assert KIND.check(requested, context).estimate.candidates > 0
    inputs = Inputs((Source(context.datasets[0], iter([table.slice(0, 60), table.slice(60)])),))
    if journal is not None:
        inputs = inputs._replace(journal=journal)
    if each_within is not None:
        inputs = inputs._replace(each_within=each_within)
    return KIND.run(requested, inputs, unheard)


def faults(table, **changes):
    with pytest.raises(InvalidRequest) as raised:
        KIND.check(request(**changes), JobContext((sheet(table),)))
    return {(fault.pointer, fault.code) for fault in raised.value.faults}


def cancer():
    data = load_breast_cancer()
    columns = {f"x{place}": data.data[:, place] for place in range(0, 30, 3)}
    return pa.table(columns | {"y": np.where(data.target == 1, "benign", "malignant")})


def diabetes():
    data = load_diabetes()
    return pa.table({f"x{place}": data.data[:, place] for place in range(10)} | {"y": data.target})


def in_shuffled_order(_kind, tasks, seconds):
    """As many slots do it: units of a wave end in another order than they began."""
    assert all(seconds(place) > 0 for place in range(len(tasks)))
    order = np.random.default_rng(len(tasks)).permutation(len(tasks))
    done = {int(place): tasks[place]() for place in order}
    return (Timed(done[place], 0.5) for place in range(len(tasks)))


@pytest.fixture(scope="module")
def of_classes():
    return searched(cancer())


def test_units_give_the_same_bytes_whatever_the_order_and_the_time_they_take(of_classes):
    again = searched(cancer(), in_shuffled_order)
    assert again.trained.blob == of_classes.trained.blob
    volatile = {"seconds", "microseconds_a_row"}
    rows, others = ([row.model_dump(exclude=volatile) for row in job.result.candidates] for job in (of_classes, again))
    assert rows == others


def test_a_leaderboard_of_classes_and_a_model(of_classes):
    result = of_classes.result
    assert (result.task, result.metric, result.better, result.units_done) == ("classification", "log_loss", "lower", 24)
    ranked = sorted((row for row in result.candidates if row.rank), key=lambda row: row.rank)
    assert [row.rank for row in ranked] == list(range(1, len(ranked) + 1))
    assert ranked[0].behind is None
    assert all(row.behind.value >= 0 for row in ranked[1:])
    assert ranked[0].validation.value == min(row.validation.value for row in ranked)
    model = decode(of_classes.trained.blob)
    served = "committee" if result.chosen is None else result.candidates[result.chosen].algorithm
    assert model.name == served
    tested = next(metric for metric in of_classes.trained.report.test if metric.name == "log_loss")
    assert result.evaluation == tested
    assert tested.n == of_classes.trained.report.rows_test == 114
    assert set(result.pareto) <= {row.id for row in ranked}
    assert ranked[0].id in result.pareto


def test_a_regression_without_a_model_has_an_estimate_of_its_own():
    result = searched(diabetes(), model=None, validation={"folds": 3, "test_fraction": 0})
    assert result.trained is None
    best = min(row.validation.value for row in result.result.candidates if row.rank)
    assert result.result.evaluation.value >= 0.98 * best
    assert result.result.evaluation.lower < 57 < result.result.evaluation.upper  # ridge of all ten columns


def test_noise_is_reported_as_noise():
    rng = np.random.default_rng(4)
    table = pa.table({f"x{place}": rng.normal(size=150) for place in range(3)} | {"y": rng.normal(size=150)})
    warnings = searched(table, units=12).result.warnings
    assert "No candidate predicts surely better than a constant." in warnings


def test_small_and_interpretable_keep_their_promises():
    small = searched(cancer(), preset="small", units=15)
    assert len(small.trained.blob) <= 100_000
    readable = searched(cancer(), preset="interpretable", include=None, units=12, exclude=["rules"])
    assert {row.algorithm for row in readable.result.candidates} <= {"logistic", "decision_tree"}


def test_limits_leave_no_version_that_breaks_them():
    limited = searched(cancer(), limits={"size_bytes": 2_000}, units=12)
    assert limited.trained is None or len(limited.trained.blob) <= 2_000
    slow = searched(cancer(), limits={"size_bytes": 10_000, "microseconds_a_row": 1.0}, units=12)
    assert slow.trained is None  # no model of ours predicts a single row in a microsecond
    assert any(
        "µs" in reason for reason in [*slow.result.warnings, *(row.reason or "" for row in slow.result.candidates)]
    )


def test_groups_are_never_split():
    table = cancer().append_column("patient", pa.array([f"p{row // 3}" for row in range(569)]))
    result = searched(table, validation={"folds": 3, "group": "patient"}, units=9).result
    assert any(row.rank for row in result.candidates)


def test_requests_that_cannot_be_done_are_refused_with_every_problem():
    table = diabetes()
    constant = table.set_column(table.num_columns - 1, "y", pa.array(np.ones(table.num_rows)))
    assert ("/target", "constant") in faults(constant)
    assert ("/dataset", "too_few") in faults(table.slice(0, 15))
    reported = faults(table, metric="log_loss", include=["logisitc"], exclude=["nobody"])
    assert {pointer for pointer, _ in reported} == {"/metric", "/include/0", "/exclude/0"}
    assert {pointer for pointer, _ in faults(table, include=["logistic"])} == {"/include"}
    assert {pointer for pointer, _ in faults(table, target="nobody")} == {"/target"}


def test_a_class_of_one_row_is_named():
    data = load_iris()
    labels = np.r_[data.target_names[data.target][:-1], ["lonely"]]
    table = pa.table({f"x{place}": data.data[:, place] for place in range(4)} | {"y": labels})
    requested, context = request(), JobContext((sheet(table),))
    checked = KIND.check(requested, context)
    with pytest.raises(InvalidRequest) as raised:
        checked.check_rows([Source(context.datasets[0], iter([table]))])
    assert "'lonely'" in raised.value.faults[0].detail


def test_the_time_limit_follows_the_budget_unless_it_is_named():
    assert AutomlRequest(dataset=NOWHERE, target="y", seconds=100).time_limit_seconds == pytest.approx(135)
    named = AutomlRequest(dataset=NOWHERE, target="y", seconds=100, time_limit_seconds=50)
    assert named.time_limit_seconds == 50


class Slots:
    """Time that passes only when a task is done: each takes so many seconds, and is ended at its limit."""

    def __init__(self, seconds):
        self.now, self.seconds, self.ended = 0.0, seconds, 0

    def __call__(self, kind, tasks, seconds):
        for place, task in enumerate(tasks):
            limit = seconds(place)
            if limit <= 0:
                yield Timed(None, 0.0, begun=False)
                continue
            took = self.seconds() if kind.__name__ == "Trial" else 0.5
            self.now += min(took, limit)
            self.ended += took > limit
            yield Timed(None, limit, late=True) if took > limit else Timed(task(), took)


@pytest.mark.parametrize("seed", range(3))
def test_the_budget_is_kept_whatever_fits_take(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    slots = Slots(lambda: float(rng.lognormal(-1.0, 1.5)))
    clock = {"clock": lambda: slots.now}
    monkeypatch.setattr(
        "app.ml.jobs.automl.TimeBudget", lambda seconds, spent: TimeBudget(seconds, spent=spent, **clock)
    )
    outcome = searched(diabetes(), slots, units=None, seconds=20, seed=seed)
    assert slots.now <= 20
    assert outcome.trained is not None
    assert outcome.result.ended_by in {"budget", "exhausted"}


# what is stored on the way


class Diary(NoJournal):
    """A journal in memory; the process dies after so many units."""

    def __init__(self, units=(), lives=math.inf):
        self.units, self.written, self.lives, self.models = [*units], [], lives, []

    def add_unit(self, unit):
        self.written.append(StoredUnit(json.loads(json.dumps(unit.outcome)), unit.payload))
        if len(self.written) >= self.lives:
            raise KeyboardInterrupt

    def replace_checkpoint(self, blob, head, seen, reference):
        self.models.append((blob, json.loads(json.dumps(head)), seen, reference))


@pytest.mark.parametrize("lives", [1, 7, 16])
def test_an_attempt_after_a_crash_does_no_stored_unit_again_and_makes_the_same_model(of_classes, lives):
    first = Diary(lives=lives)
    with pytest.raises(KeyboardInterrupt):
        searched(cancer(), journal=first)
    second = Diary(first.written)
    again = searched(cancer(), journal=second)
    assert again.trained.blob == of_classes.trained.blob
    assert len(second.written) == 24 - lives


def test_what_is_stored_is_a_leaderboard_and_a_model():
    diary = Diary(lives=20)
    with pytest.raises(KeyboardInterrupt):
        searched(cancer(), journal=diary)
    blob, head, *_ = diary.models[-1]
    check_golden(decode(blob), head["golden"])
    parts = StoredParts([unit.outcome for unit in diary.written], head["note"], "cancel")
    result = KIND.partial(request(), parts)
    assert (result.ended_by, result.units_done, result.chosen) == ("cancel", 20, head["note"]["candidate"])
    ranked = sorted((row for row in result.candidates if row.rank), key=lambda row: row.rank)
    assert ranked[0].validation.value == min(row.validation.value for row in ranked)
    assert all(row.validation.n == 3 for row in ranked)
    few = KIND.partial(request(), StoredParts(parts.outcomes[:1], None, "crash"))
    assert "No version was made: no model was stored yet." in few.warnings


# the order of units


def losses_of(quality, rows=400):
    return lambda unit: quality[unit.candidate] + np.random.default_rng([5, unit.fold]).normal(0, 1, rows) ** 2


def play(order, losses, propose=lambda: None):
    units = []
    while wave := order.next_wave(propose):
        assert len(wave) <= WAVE
        for unit in wave:
            order.add(unit, losses(unit))
        units += wave
        order.decide()
    return units


def test_a_race_does_no_unit_twice_and_drops_what_is_surely_worse():
    quality = [0.5, 0.9, 0.0, 0.45, 1.5, 0.02]
    noise = np.random.default_rng(0)
    order = WaveOrder(6, rungs(5, 300), tested=50)
    units = play(order, lambda unit: losses_of(quality)(unit) + noise.normal(0, 0.2, 400))
    assert len(units) == len(set(units))
    assert units[:5] == [Unit(0, fold, None) for fold in range(5)]  # something to serve as soon as can be
    assert order.complete[0] == 2
    assert order.states[4] == "dropped"
    assert order.states[5] == "done"


def test_large_tables_climb_rungs():
    assert rungs(5, 300) == [Rung(1, None), Rung(2, None), Rung(5, None)]
    assert rungs(5, 30_000) == [Rung(1, 10_000), Rung(2, None), Rung(5, None)]
    assert rungs(1, 400_000) == [Rung(1, 10_000), Rung(1, 40_000), Rung(1, None)]
    order = WaveOrder(12, rungs(5, 1_000_000), tested=50)
    units = play(order, losses_of(np.linspace(1, 0, 12)))
    assert order.complete[0] == 11
    assert [unit.rows for unit in units[5:8]] == [10_000] * 3


def test_groups_count_as_one_row():
    """Rows of a group are copies: of 40 groups a difference shows nothing that 40 rows would not show."""
    groups, rng = np.repeat(np.arange(40), 50), np.random.default_rng(1)
    shifts = [np.repeat(rng.normal(0.02, 0.3, 40), 50) for _ in range(3)]
    order = WaveOrder(2, rungs(3, 100), [groups] * 3, tested=2)
    play(order, lambda unit: 1.0 + (shifts[unit.fold] if unit.candidate else np.zeros(2000)))
    assert order.states == ["done", "done"]


# the choice


def test_differences_are_those_of_nadeau_and_bengio():
    rng = np.random.default_rng(2)
    losses = [[rng.normal(1, 0.1, 50) for _ in range(5)] for _ in range(2)]
    behind, p = Comparison.of("mae", losses).behind(1)
    differences = np.array([b.mean() - a.mean() for a, b in zip(*losses, strict=True)])
    error = np.sqrt(differences.var(ddof=1) * (1 / 5 + 1 / 4))
    assert behind.value == pytest.approx(differences.mean())
    assert p == pytest.approx(2 * stats.t.sf(abs(differences.mean() / error), 4))
    assert behind.upper - behind.value == pytest.approx(stats.t.ppf(0.975, 4) * error)


def test_an_ensemble_of_independent_errors_gains_and_one_of_copies_does_not():
    rng = np.random.default_rng(3)
    truths = [rng.normal(size=200) for _ in range(5)]
    noisy = [[truth + rng.normal(0, 1, 200) for truth in truths] for _ in range(4)]
    pool = Pool("rmse", noisy, truths, lambda values: values)
    assert np.count_nonzero(pool.weights(range(5), 8, 0)) == 4
    assert pool.gain(8, 0).min() > 0.3  # 1 - 1/√4, nearly
    copies = Pool("rmse", [noisy[0]] * 4, truths, lambda values: values)
    assert copies.gain(8, 0) == pytest.approx(np.zeros(5), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("candidates", [1, 30])
def test_intervals_after_a_choice_cover(candidates):
    """300 searches among equal candidates whose losses share what makes a row hard."""
    covered = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        losses = rng.exponential(1.0, 300) + rng.normal(0, 0.3, (candidates, 300))
        corrected = bias_corrected("mae", losses, seed)
        covered += corrected.lower <= 1.0 <= corrected.upper
    assert covered >= 0.93 * 300

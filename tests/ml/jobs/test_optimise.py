"""Inputs that reach goals: known optima, prices of limits, fronts, intervals, training distance, and refusals."""

import numpy as np
import pyarrow as pa
import pytest
import scipy

from app.base.errors import InvalidRequest, NoInterval
from app.ml.contract.progress import unheard
from app.ml.jobs import optimise
from app.ml.kinds.job import Inputs, JobContext, Loaded, Source, Version
from app.ml.models.header import read_header
from app.ml.models.model import decode, digest
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.jobs.test_suggest import NOWHERE, sheet, surrogate

RNG = np.random.default_rng(6)
A, B = RNG.uniform(-2, 2, (2, 120))
PLANE = pa.table({"x": A, "y": B, "sum": A + B, "square": A**2 + B**2, "bowl": (A - 0.5) ** 2 + 2 * (B + 0.25) ** 2})
KIND = RNG.choice(["steel", "brass"], 120)
PARTS = pa.table({"x": A, "kind": KIND, "y": 3 - A**2 + 2 * (KIND == "brass")})


def model(target, name="linear", table=PLANE, features=("x", "y"), squares=True, **spec):
    """A least-squares fit that is exact, with the squares of its columns."""
    basis = [
        {"kind": "expression", "expression": f"{column} ** 2"} for column in features if column in "xy" and squares
    ]
    given = {"algorithm": {"name": name}, "target": target, "features": [*features], "preprocessing": {"basis": basis}}
    return surrogate(table=table, **(given | spec))


def best(*models, table=None, **body):
    names = [one.version.model for one in models]
    goals = [{"model": name} | goal for name, goal in zip(names, body.pop("goals", [{}] * len(names)), strict=True)]
    given = {"goals": goals, "effort": "quick"} | body | ({} if table is None else {"dataset": NOWHERE})
    request = optimise.OptimiseRequest.model_validate(given)
    sheets = () if table is None else (sheet(table),)
    versions = tuple(one.version for one in models)
    optimise.KIND.check(request, JobContext(sheets, versions))
    sources = tuple(Source(one, iter([table])) for one in sheets)
    return optimise.KIND.run(request, Inputs(sources, models), unheard).result


@pytest.fixture(scope="module")
def total():
    return model("sum", squares=False)


@pytest.fixture(scope="module")
def square():
    return model("square")


@pytest.fixture(scope="module")
def bowl():
    return model("bowl")


def test_the_example_of_lagrange(total, square):
    """LION 8.3.1: max x + y on x² + y² = 1 is at x = y = 0.7071068, with the multiplier 0.7071068."""
    result = best(total, square, goals=[{}, {"aim": "at_most", "value": 1.0}])
    (solution,) = result.solutions
    assert solution.row == {"x": pytest.approx(0.7071068, abs=1e-5), "y": pytest.approx(0.7071068, abs=1e-5)}
    (price,) = result.prices
    assert (price.limit, price.place, price.end) == ("goal", 1, "at_most")
    assert price.price == pytest.approx(0.7071068, abs=1e-3)
    assert result.value == pytest.approx(np.sqrt(2), abs=1e-6)
    assert solution.goals[1].kept


def test_a_price_is_what_moving_the_limit_gains(bowl):
    """The derivative of the optimum by the limit, by solving again with another one."""

    def limited(most):
        return best(
            bowl, goals=[{"aim": "minimise"}], constraints=[{"coefficients": {"x": 1, "y": 1}, "at_least": most}]
        )

    one, other = limited(1.0), limited(1.01)
    (price,) = one.prices
    assert (price.limit, price.place, price.end) == ("constraint", 0, "at_least")
    assert (other.value - one.value) / 0.01 == pytest.approx(price.price, rel=0.02)
    assert price.price == pytest.approx(2 * 0.75 / 1.5, rel=1e-2)  # of the parabola that is left along x + y = 1


def test_bounds_have_prices_and_are_named(bowl):
    result = best(bowl, goals=[{"aim": "minimise"}], variables=[{"column": "x", "minimum": 1.0, "maximum": 2.0}])
    (solution,) = result.solutions
    assert solution.row == {"x": pytest.approx(1), "y": pytest.approx(-0.25, abs=1e-4)}
    assert (solution.at_bound, solution.at_training_border, solution.outside_range) == (["x"], [], [])
    (price,) = result.prices
    assert (price.limit, price.column, price.end) == ("bound", "x", "at_least")
    assert price.price == pytest.approx(1.0, rel=1e-2)  # d (x − ½)²/dx at 1


def test_beyond_the_training_rows_a_solution_is_flagged(total):
    result = best(total, table=PLANE, variables=[{"column": "x", "minimum": 0, "maximum": 4}])
    (solution,) = result.solutions
    assert solution.outside_range == ["x"]
    assert solution.at_training_border == ["y"]
    assert solution.nearest.distance > 5 * solution.nearest.usual_distance
    at = solution.nearest.row
    far = np.hypot((A - solution.row["x"]) / A.std(), (B - solution.row["y"]) / B.std())
    assert at == far.argmin()


def test_a_target_is_hit(square):
    result = best(square, goals=[{"aim": "target", "value": 3.0}])
    assert result.solutions[0].goals[0].prediction == pytest.approx(3, abs=1e-4)
    assert result.value == pytest.approx(0, abs=1e-4)


def test_the_optimum_of_a_linear_programme_over_a_mixture(total):
    """Shares that add to one, with the vertex of scipy."""
    result = best(total, goals=[{}], variables=[{"column": c, "minimum": 0, "maximum": 1} for c in "xy"],
                  constraints=[{"coefficients": {"x": 1, "y": 1}, "at_least": 1, "at_most": 1},
                               {"coefficients": {"x": 2, "y": 1}, "at_most": 1.5}])  # fmt: skip
    assert result.value == pytest.approx(1)
    row = result.solutions[0].row
    assert row["x"] + row["y"] == pytest.approx(1)
    assert 2 * row["x"] + row["y"] <= 1.5 + 1e-9


def test_categories_and_fixed_inputs():
    parts = model("y", table=PARTS, features=("x", "kind"))
    result = best(parts)
    assert result.solutions[0].row == {"x": pytest.approx(0, abs=1e-3), "kind": "brass"}
    held = best(parts, fixed={"kind": "steel"})
    assert held.solutions[0].row["kind"] == "steel"
    assert result.value - held.value == pytest.approx(2, abs=1e-6)
    one = best(parts, variables=[{"column": "kind", "values": ["steel"]}])
    assert one.value == pytest.approx(held.value, abs=1e-6)


def test_two_goals_have_a_front_whose_ends_are_their_own_optima(total, square):
    """Max x + y against min x² + y²: the best points lie on the diagonal, where the sum s has the square s²/2."""
    result = best(total, square, goals=[{}, {"aim": "minimise"}], n_solutions=15,
                  variables=[{"column": c, "minimum": -2, "maximum": 2} for c in "xy"])  # fmt: skip
    sums, squares = np.array([[goal.prediction for goal in one.goals] for one in result.solutions]).T
    assert len(sums) == 15
    assert (np.diff(sums) < 0).all()
    assert (np.diff(squares) < 0).all()
    np.testing.assert_allclose(squares, sums**2 / 2, atol=1e-4)
    assert sums.max() == pytest.approx(4)
    assert sums.min() == pytest.approx(0, abs=0.05)
    # between (0, 8), the worst values, and the front lies ∫ (8 − s²/2) ds over s of 0 to 4
    assert result.hypervolume == pytest.approx(32 - 64 / 6, rel=0.1)
    assert result.no_prices.startswith("Prices belong to one solution")


def test_a_weighted_sum_has_one_solution(total, square):
    """x + y − ½(x² + y²) is largest at (1, 1)."""
    goals = [{"weight": 1.0}, {"aim": "minimise", "weight": 0.5}]
    result = best(total, square, goals=goals, combine="weighted_sum")
    assert result.solutions[0].row == {"x": pytest.approx(1, abs=1e-3), "y": pytest.approx(1, abs=1e-3)}
    assert result.value == pytest.approx(1, abs=1e-6)
    assert result.prices == []


def test_the_error_of_the_model_keeps_a_solution_near_the_rows():
    """A rising function, measured in a corner: the lower bound is largest nearer to its rows than the mean."""
    x = np.linspace(0, 1, 12)
    table = pa.table({"x": x, "y": x})
    given = {"name": "gaussian_process", "kernel": "rbf", "length_scale": 1.0, "sigma": 0.02}
    loaded = surrogate(table=table, algorithm=given)
    wide = {"variables": [{"column": "x", "minimum": 0, "maximum": 6}]}
    mean, careful = best(loaded, **wide), best(loaded, goals=[{"confidence": 0.95}], **wide)
    assert careful.solutions[0].row["x"] < mean.solutions[0].row["x"]
    goal = careful.solutions[0].goals[0]
    assert careful.value == pytest.approx(goal.lower)
    assert goal.lower < goal.prediction < goal.upper


def test_a_forest_has_no_prices_and_the_reason():
    forest = model("bowl", algorithm={"name": "random_forest", "n_estimators": 20}, squares=False)
    result = best(forest, goals=[{"aim": "minimise"}])
    assert result.prices is None
    assert "constant around the solution" in result.no_prices
    assert result.value < np.quantile(PLANE["bowl"], 0.05)


def test_the_probability_of_a_class():
    labelled = PLANE.append_column("up", pa.array(np.where(A + B > 0, "yes", "no").astype(str).tolist()))
    classifier = surrogate(table=labelled, algorithm={"name": "logistic"}, target="up", features=["x", "y"])
    result = best(classifier, goals=[{"label": "no"}])
    assert result.solutions[0].row == {"x": pytest.approx(A.min()), "y": pytest.approx(B.min())}
    assert 0.99 < result.value <= 1
    with pytest.raises(InvalidRequest) as raised:
        best(classifier, goals=[{"label": "maybe", "confidence": 0.9}])
    assert [fault.pointer for fault in raised.value.faults] == ["/goals/0/label", "/goals/0/confidence"]


def test_a_text_is_fixed():
    notes = pa.array(["good day", "bad day", "fine day"] * 40)
    table = pa.table({"note": notes, "x": A, "up": np.where(A > 0, "yes", "no").astype(str).tolist()})
    given = {"algorithm": {"name": "logistic"}, "target": "up", "preprocessing": {"text": {"note": {}}}}
    spec = TrainSpec.model_validate(given | {"features": ["note", "x"], "validation": {"test_fraction": 0}})
    kinds = {"note": "text", "up": "categorical"}
    columns = [one._replace(kind=kinds.get(one.name, one.kind)) for one in sheet(table).columns]
    made = train(plan(spec, columns, len(table)), table, data_digest="sha256:own")
    loaded = Loaded(Version("m", 1, digest(made.blob), read_header(made.blob)), decode(made.blob))
    result = best(loaded, goals=[{"label": "yes"}], fixed={"note": "good day"})
    assert result.solutions[0].row == {"x": pytest.approx(A.max()), "note": "good day"}
    for body in ({}, {"variables": [{"column": "note", "values": ["bad day"]}]}):
        with pytest.raises(InvalidRequest, match="Texts do not vary"):
            best(loaded, goals=[{"label": "yes"}], **body)


def test_limits_that_cannot_be_kept_are_reported(total, square):
    result = best(total, square, goals=[{}, {"aim": "at_most", "value": -1.0}])
    assert not result.feasible
    assert not result.solutions[0].goals[1].kept
    assert result.solutions[0].goals[1].prediction == pytest.approx(0, abs=0.02)
    assert "keep all limits" in result.warnings[0]


def test_a_model_without_intervals_has_no_error_to_count():
    loaded = model("sum", squares=False, algorithm={"name": "ridge"})
    with pytest.raises(NoInterval):
        best(loaded, goals=[{"confidence": 0.9}])


def test_the_same_seed_gives_the_same_result(bowl):
    assert best(bowl, seed=3) == best(bowl, seed=3)


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"goals": [{"aim": "at_most", "value": 1.0}]}, ["/goals"]),
        ({"goals": [{"label": "a", "version": 1, "alias": "b"}]}, ["/goals/0/alias", "/goals/0/label"]),
        ({"fixed": {"z": 1}, "variables": [{"column": "x", "minimum": 3}]}, ["/variables/0/minimum", "/fixed/z"]),
        ({"constraints": [{"coefficients": {"x": 1}, "at_least": 9}]}, ["/constraints"]),
    ],
)
def test_a_fault_has_its_place(bowl, body, pointers):
    with pytest.raises(InvalidRequest) as raised:
        best(bowl, **body)
    assert [fault.pointer for fault in raised.value.faults] == pointers


def test_differential_evolution_of_scipy_finds_no_better_input():
    loaded = surrogate(table=PLANE.select(["x", "y", "bowl"]), target="bowl", algorithm={"name": "gaussian_process"})
    ends = [(A.min(), A.max()), (B.min(), B.max())]
    peer = scipy.optimize.differential_evolution(
        lambda x: -loaded.model.predict(x.T.copy()).values, ends, rng=0, vectorized=True, updating="deferred",
        maxiter=60, tol=1e-8,
    )  # fmt: skip
    assert best(loaded).value >= -peer.fun - 1e-6

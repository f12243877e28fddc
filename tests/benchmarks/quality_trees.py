"""Quality of trees, forests and boosting against their rivals on rows that none of them has seen.

    python -m tests.benchmarks.quality_trees [algorithm or set] …

Bundled sets are divided in 5 folds, three times over; drawn ones are drawn anew twelve times, 5,000 rows to learn from
and 15,000 to evaluate it. Each time the loss of ours less that of the rival is taken: the table has its mean and
standard error (Nadeau & Bengio, 2003: of folds, which share rows, 1/J + 1/4 of the variance over J times, not 1/J).
Less is better, and more than one standard error is `behind`: so is one in six of what is equally good, by chance. The
last lines put all sets together. Settings mean the same for all; where a rival means something else by a name, that is
reported.
LightGBM and XGBoost take part where they are installed.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets, ensemble, linear_model, model_selection, multiclass, tree

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Accepts, Data, Task
from tests.benchmarks import paired
from tests.benchmarks.paired import Array, Paired, class_losses, optional, together

Prediction = Callable[["Split", int], Array]
OLD, NEW, DRAWS, FOLDS, TURNS = 5_000, 15_000, 12, 5, 3
MIXED = (0, 0, 0, 0, 0, 4, 12, 40)
FOREST = {"n_estimators": 100, "importance": False}
PLAIN = {"cat_smooth": 1e-10, "cat_l2": 0, "min_data_per_group": 1, "max_cat_threshold": OLD}
"""LightGBM: a category counts as its rows do, however few they are. Smoothed by nothing at all, those without rows have
the order 0/0, and scatter the others: by chance good on `mixed`, where rare categories mislead, and bad elsewhere.
"""


lightgbm, xgboost = optional("lightgbm"), optional("xgboost")


class Split(NamedTuple):
    x: Array
    """(n, d), with NaN where a cell is missing."""
    y: Array
    new_x: Array
    new_y: Array


class Table(NamedTuple):
    rows: int
    """To learn from."""
    d: int
    classes: int
    """0 for numbers."""
    splits: Callable[[], Iterator[Split]]
    shared: float
    """Test rows for each training row, if splits share rows."""
    levels: tuple[int, ...] = ()
    """(d,) categories of each column, 0 for a number; () if all are numbers."""

    @property
    def task(self) -> Task:
        return Task.CLASSIFICATION if self.classes else Task.REGRESSION

    @property
    def categories(self) -> list[int]:
        return [j for j, levels in enumerate(self.levels) if levels]

    def indicated(self, x: Array) -> Array:
        """(n, m) numbers, and a column of 0 and 1 for each category and for its absence."""
        parts = []
        for column, levels in zip(x.T, self.levels or (0,) * self.d, strict=True):
            known = np.where(np.isnan(column), levels, column)
            parts.append((known[:, None] == np.arange(levels + 1)) * 1.0 if levels else column[:, None])
        return np.hstack(parts)


def bundled(load: Callable[..., Any]) -> Table:
    x, y = load(return_X_y=True)
    classes = 0 if load is datasets.load_diabetes else int(y.max()) + 1
    kind = model_selection.StratifiedKFold if classes else model_selection.KFold

    def splits() -> Iterator[Split]:
        for turn in range(TURNS):
            for old, new in kind(FOLDS, shuffle=True, random_state=turn).split(x, y):
                yield Split(x[old], y[old], x[new], y[new])

    return Table(len(x) * (FOLDS - 1) // FOLDS, x.shape[1], classes, splits, 1 / (FOLDS - 1))


def drawn(draw: Callable[[int, int], tuple[Array, Array]], d: int, classes: int, levels: tuple[int, ...] = ()) -> Table:
    def splits() -> Iterator[Split]:
        for seed in range(DRAWS):
            x, y = draw(OLD + NEW, seed)
            yield Split(x[:OLD], y[:OLD], x[OLD:], y[OLD:])

    return Table(OLD, d, classes, splits, 0.0, levels)


def friedman(n: int, seed: int) -> tuple[Array, Array]:
    x, y = datasets.make_friedman1(n, 10, noise=1.0, random_state=seed)
    return x, y / 5  # the variance is about 1


def flipped(n: int, seed: int) -> tuple[Array, Array]:
    x, y = datasets.make_classification(n, 20, n_informative=10, n_redundant=5, flip_y=0.05, random_state=seed)
    return x, y


def prices(n: int, seed: int) -> tuple[Array, Array]:
    """Of stones: by weight, three sizes that follow from it, two of proportions, and three grades."""
    rng = np.random.default_rng(seed)
    weight = np.exp(rng.normal(-0.4, 0.55, n))
    sizes = np.cbrt(163 * weight)[:, None] * (1 + 0.01 * rng.normal(size=(n, 3))) * [1, 1, 0.62]
    grades = [rng.choice(5, n, p=[0.03, 0.09, 0.22, 0.26, 0.4]), rng.integers(0, 7, n), rng.integers(0, 8, n)]
    depth, table = 61.7 + 1.4 * rng.normal(size=n), 57.4 + 2.2 * rng.normal(size=n)
    value = 1.7 * np.log(weight) + 0.03 * grades[0] - 0.08 * grades[1] + 0.12 * grades[2] + 0.01 * (depth - 61.7)
    return np.column_stack([weight, *grades, depth, table, sizes]), np.exp(value + 0.1 * rng.normal(size=n))


def few_matter(n: int, seed: int) -> tuple[Array, Array]:
    """Four of thirty columns, two of them together only."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 30))
    return x, x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + x[:, 3] + 0.5 * rng.normal(size=n)


def redundant(n: int, seed: int) -> tuple[Array, Array]:
    """Twenty-four noisy mixtures of four numbers."""
    rng, law = np.random.default_rng(seed), np.random.default_rng(1)
    z = rng.normal(size=(n, 4))
    x = z @ law.normal(size=(4, 24)) + 0.7 * rng.normal(size=(n, 24))
    return x, z[:, 0] * z[:, 1] + z[:, 2] + 0.5 * rng.normal(size=n)


def mixed(n: int, seed: int) -> tuple[Array, Array]:
    """Five numbers and three columns of 4, 12 and 40 categories, a tenth of the cells missing, three classes."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(k, size=n) if k else rng.normal(size=n) for k in MIXED])
    score = x[:, [0, 1, 2]] * x[:, [3]] + np.sin(2 * x[:, [4, 0, 1]])
    for j in (5, 6, 7):
        score += rng.normal(size=(MIXED[j], 3))[x[:, j].astype(int)]
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x, y


TABLES: dict[str, Table] = {
    "breast_cancer": bundled(datasets.load_breast_cancer),
    "wine": bundled(datasets.load_wine),
    "digits": bundled(datasets.load_digits),
    "diabetes": bundled(datasets.load_diabetes),
    "friedman": drawn(friedman, 10, 0),
    "flipped": drawn(flipped, 20, 2),
    "mixed": drawn(mixed, len(MIXED), 3, MIXED),
    "prices": drawn(prices, 9, 0),
    "few_matter": drawn(few_matter, 30, 0),
    "redundant": drawn(redundant, 24, 0),
}


class Rival(NamedTuple):
    make: Callable[..., Any]
    """Of a seed, an estimator."""
    takes_categories: bool = False
    more: dict[str, Any] = {}
    """With the rows."""


class Contest(NamedTuple):
    """One algorithm and its rivals for one table, with settings that mean the same."""

    algorithm: str
    ours: dict[str, Any]
    rivals: dict[str, Rival]


def of_kind(module: Any, prefix: str, table: Table, **how: Any) -> Callable[..., Any]:
    return paired.of_kind(module, prefix, classes=table.classes > 0, **how)


def lgbm(table: Table, **how: Any) -> dict[str, Rival]:
    if not lightgbm:
        return {}
    more = {"categorical_feature": table.categories} if table.levels else {}
    return {"LightGBM": Rival(of_kind(lightgbm, "LGBM", table, n_jobs=1, verbose=-1, **how), True, more)}


def xgb(table: Table, **how: Any) -> dict[str, Rival]:
    if not xgboost:
        return {}
    if table.levels:
        how |= {"enable_categorical": True, "feature_types": ["c" if levels else "q" for levels in table.levels]}
    return {"XGBoost": Rival(of_kind(xgboost, "XGB", table, n_jobs=1, **how), takes_categories=True)}


def sklearn(module: Any, prefix: str, table: Table, **how: Any) -> dict[str, Rival]:
    return {"sklearn": Rival(of_kind(module, prefix, table, **how))}


def decision_tree(table: Table) -> Contest:
    how = {"min_samples_leaf": 5}
    return Contest("decision_tree", how, sklearn(tree, "DecisionTree", table, **how))


def binned_tree(table: Table) -> Contest:
    """LightGBM's single tree tells shares of classes by one Newton step, and so is a rival for numbers only."""
    rivals = sklearn(tree, "DecisionTree", table, min_samples_leaf=5)
    if not table.classes:
        rivals |= lgbm(table, n_estimators=1, learning_rate=1, num_leaves=OLD, min_child_samples=5, min_child_weight=0)
    return Contest("decision_tree", {"min_samples_leaf": 5, "splits": "binned"}, rivals)


def columns(table: Table, *, indicated: bool = False) -> int:
    """Drawn for each split. indicated: of those that stand for categories."""
    d = table.d + sum(table.levels) if indicated else table.d
    return math.ceil(math.sqrt(d) if table.classes else d / 2)


def newton_forests(table: Table, trees: int) -> dict[str, Rival]:
    """Forests of regression trees: of k > 2 classes k a round, whose Newton steps make a score.

    They draw rows without replacement. What LightGBM holds back of rare categories, ours and XGBoost do not.
    """
    drawn: dict[str, Any] = {"subsample": 0.632, "reg_lambda": 0}
    own: dict[str, Any] = {
        "num_leaves": OLD,
        "subsample_freq": 1,
        "min_child_samples": 1,
        "n_estimators": trees,
        **PLAIN,
    }
    rivals = lgbm(table, boosting_type="rf", feature_fraction_bynode=columns(table) / table.d, **drawn, **own)
    own = {"max_leaves": OLD, "max_depth": 0, "min_child_weight": 0, "learning_rate": 1, "n_estimators": 1}
    own |= {"num_parallel_tree": trees, "colsample_bynode": columns(table) / table.d}
    return rivals | xgb(table, grow_policy="lossguide", **drawn, **own)


def random_forest(table: Table) -> Contest:
    """Probabilities are shares of the votes. A forest of numbers means the same to all."""
    rivals = sklearn(ensemble, "RandomForest", table, max_features=columns(table, indicated=True))
    return Contest("random_forest", FOREST | {"max_features": columns(table)}, rivals | numbers_only(table))


def default_forest(table: Table) -> Contest:
    """Each with its own defaults: of numbers ours tries half of the columns at a node, and scikit-learn all."""
    return Contest("random_forest", {"importance": False}, sklearn(ensemble, "RandomForest", table))


def numbers_only(table: Table) -> dict[str, Rival]:
    return {} if table.classes else newton_forests(table, 100)


def calibrated_forest(table: Table) -> Contest:
    """Votes made probabilities, against Newton steps made probabilities; 100 trees in all."""
    ours = FOREST | {"max_features": columns(table), "probability": "calibrated"}
    rounds = math.ceil(100 / table.classes) if table.classes > 2 else 100
    return Contest("random_forest", ours, newton_forests(table, rounds))


def forest_per_class(table: Table) -> Contest:
    """A forest of 100 trees for each class."""
    base = {"name": "random_forest", **FOREST, "max_features": columns(table), "probability": "calibrated"}
    rivals = newton_forests(table, 100) if table.classes > 2 else {}
    return Contest("ecoc", {"estimator": base, "code": "one_vs_all", "decode": "shares"}, rivals)


def bagging(table: Table) -> Contest:
    """A row drawn twice weighs 2; scikit-learn would count it as one, but for the share of the weight."""
    member = of_kind(tree, "DecisionTree", table, min_weight_fraction_leaf=2.5 / table.rows)()
    rivals = sklearn(ensemble, "Bagging", table, estimator=member, n_estimators=25)
    return Contest(
        "bagging", {"estimator": {"name": "decision_tree", "min_samples_leaf": 3}, "n_estimators": 25}, rivals
    )


def adaboost(table: Table) -> Contest:
    """scikit-learn's probabilities are of the votes divided by their sum, and so too timid; it takes no empty cells."""
    rivals = {} if table.levels else sklearn(ensemble, "AdaBoost", table, n_estimators=50)
    return Contest("adaboost", {"n_estimators": 50}, rivals)


def logitboost(table: Table) -> Contest:
    """Of k > 2 classes LightGBM divides by k/(k - 1) of the curvature, as ours does, and XGBoost by twice of it.

    A stump's step is the wilder the fewer rows a bin cuts off. Of 5,000 LightGBM's have 20 at least, 250 bins, and ours
    as near 5,000/255 as may be: that alone is a ten thousandth of the log-loss. With 128 bins all are even.
    """
    k = table.classes
    part = (k - 1) / k if k > 2 else 1
    how = {"learning_rate": 0.5, "min_child_weight": 1e-12, "max_delta_step": 4 * part}
    rivals = lgbm(table, num_leaves=2, min_child_samples=1, boost_from_average=False, **how, **PLAIN)
    if k > 2:
        how |= {"learning_rate": part, "max_delta_step": 2}
    rivals |= xgb(table, max_depth=1, reg_lambda=0, base_score=0.5, n_estimators=100, **how)
    return Contest("logitboost", {"n_estimators": 100, "learning_rate": 0.5, "splits": "binned", "tol": 1e-15}, rivals)


def hist(table: Table, **how: Any) -> Callable[..., Any]:
    losses_of = {"early_stopping": False, "categorical_features": table.categories or None}
    return of_kind(ensemble, "HistGradientBoosting", table, **losses_of, **how)


def gradient_boosting(table: Table) -> Contest:
    """Of k > 2 classes LightGBM's curvature is k/(k - 1) of ours."""
    k = table.classes
    rivals = {"sklearn": Rival(hist(table), takes_categories=True)}
    rivals |= lgbm(table, learning_rate=0.1 * (k / (k - 1) if k > 2 else 1))
    return Contest("gradient_boosting", {"l2": 0.0}, rivals)


def small_leaves(table: Table) -> Contest:
    """XGBoost counts no rows; of k > 2 classes its curvature is twice ours."""
    twice = 2 if table.classes > 2 else 1
    how = {"grow_policy": "lossguide", "max_leaves": 31, "max_depth": 0, "min_child_weight": 1e-3, "n_estimators": 100}
    rivals = xgb(table, learning_rate=0.1 * twice, reg_lambda=twice, **how)
    return Contest("gradient_boosting", {"l2": 1.0, "min_samples_leaf": 1}, rivals)


def one_against_all(table: Table) -> Contest:
    """The shares of a booster for each class; for two classes there is but one."""

    def seeded(random_state: int) -> Any:
        return multiclass.OneVsRestClassifier(hist(table, max_iter=25)(random_state=random_state))

    base = {"name": "gradient_boosting", "n_estimators": 25, "l2": 0.0}
    rivals = {"sklearn": Rival(seeded, takes_categories=True)} if table.classes > 2 else {}
    return Contest("ecoc", {"estimator": base, "code": "one_vs_all", "decode": "shares"}, rivals)


def members(table: Table) -> list[dict[str, Any]]:
    forest = {"name": "random_forest", **FOREST, "n_estimators": 25, "max_features": columns(table)}
    booster = {"name": "gradient_boosting", "n_estimators": 25, "l2": 0.0}
    return [{"name": "decision_tree", "min_samples_leaf": 5}, forest, booster]


def their_members(table: Table, random_state: int) -> list[tuple[str, Any]]:
    forest = of_kind(ensemble, "RandomForest", table, n_estimators=25, max_features=columns(table, indicated=True))
    booster = of_kind(ensemble, "HistGradientBoosting", table, max_iter=25, early_stopping=False)
    own = of_kind(tree, "DecisionTree", table, min_samples_leaf=5), forest, booster
    return [(str(place), make(random_state=random_state)) for place, make in enumerate(own)]


def committee(table: Table) -> Contest:
    """The mean of what three different learners."""
    kind = {"voting": "soft"} if table.classes else {}

    def seeded(random_state: int) -> Any:
        return of_kind(ensemble, "Voting", table, estimators=their_members(table, random_state), **kind)()

    return Contest("committee", {"estimators": members(table)}, {"sklearn": Rival(seeded)})


def stacking(table: Table) -> Contest:
    """On top weights that are not negative, of numbers, and logistic regression, of classes."""
    weights = linear_model.LinearRegression(positive=True, fit_intercept=False)
    above = linear_model.LogisticRegression(max_iter=1000) if table.classes else weights
    folds = model_selection.StratifiedKFold if table.classes else model_selection.KFold
    make = of_kind(ensemble, "Stacking", table, final_estimator=above)

    def seeded(random_state: int) -> Any:
        shuffled = folds(5, shuffle=True, random_state=random_state)
        return make(estimators=their_members(table, random_state), cv=shuffled)

    ours: dict[str, Any] = {"members": members(table)}
    if table.classes:
        ours["second"] = {"name": "logistic"}
    return Contest("stacking", ours, {"sklearn": Rival(seeded)})


def random_subspace(table: Table) -> Contest:
    """Each member sees half of the columns; with categories these are others than a rival's indicators."""
    member = of_kind(tree, "DecisionTree", table, min_samples_leaf=3)()
    half = {"max_features": 0.5, "bootstrap": False, "n_estimators": 25}
    rivals = {} if table.levels else sklearn(ensemble, "Bagging", table, estimator=member, **half)
    base = {"name": "decision_tree", "min_samples_leaf": 3}
    return Contest("random_subspace", {"estimator": base, "n_estimators": 25, "max_features": 0.5}, rivals)


CONTESTS = (
    *(
        decision_tree,
        binned_tree,
        random_forest,
        default_forest,
        calibrated_forest,
        forest_per_class,
        bagging,
        random_subspace,
    ),
    *(adaboost, logitboost, gradient_boosting, small_leaves, one_against_all, committee, stacking),
)
CLASSES_ONLY = (calibrated_forest, forest_per_class, adaboost, logitboost, one_against_all)


def losses(table: Table, response: Array, y: Array) -> dict[str, float]:
    return class_losses(response, y) if table.classes else {"1 - R2": float(np.mean((response - y) ** 2) / y.var())}


def by_ours(contest: Contest, table: Table, split: Split, seed: int) -> Array:
    algorithm = find(contest.algorithm).algorithm
    params = algorithm.params.model_validate(contest.ours)
    native = Accepts.CATEGORIES in nested.accepts(algorithm, params, table.task)
    x, new, levels = (split.x, split.new_x, table.levels or None) if native else (*_indicated(table, split), None)
    data = Data.of(table.task, x, split.y, classes=table.classes, levels=levels, missing=True)
    state = algorithm.fit(params, data, nested.context(seed)).state
    predicted: Array = algorithm.predict(params, state, np.ascontiguousarray(new))
    return predicted


def by_rival(rival: Rival, table: Table, split: Split, seed: int) -> Array:
    x, new = (split.x, split.new_x) if rival.takes_categories else _indicated(table, split)
    fitted = rival.make(random_state=seed).fit(x, split.y, **rival.more)
    predicted: Array = fitted.predict_proba(new) if table.classes else fitted.predict(new)
    return predicted


def _indicated(table: Table, split: Split) -> tuple[Array, Array]:
    return table.indicated(split.x), table.indicated(split.new_x)


def losses_of(table: Table, response: Prediction) -> dict[str, Array]:
    """Of each measure the losses (J,)."""
    each = [losses(table, response(split, seed), split.new_y) for seed, split in enumerate(table.splits())]
    return {measure: np.array([loss[measure] for loss in each]) for measure in each[0]}


def compare(which: str, title: str, contest: Contest, table: Table) -> Iterator[tuple[str, float]]:
    """Prints a line for each rival and measure; by how many standard errors ours is behind."""
    if not contest.rivals:
        return
    ours = losses_of(table, partial(by_ours, contest, table))
    for who, rival in contest.rivals.items():
        for measure, theirs in losses_of(table, partial(by_rival, rival, table)).items():
            lead = Paired.of(ours[measure], theirs, table.shared)
            print(
                f"{which:14}{title:18}{who:9}{measure:9}{ours[measure].mean():9.5f}{theirs.mean():9.5f}"
                f"{lead.difference:+10.5f} ± {lead.error:.5f}{lead.t:+7.2f}  "
                f"{'behind' if lead.t > 1 else 'ahead' if lead.t < -1 else 'even'}",
                flush=True,
            )
            yield f"{title:18}{who:9}{measure}", lead.t


def main(chosen: set[str]) -> None:
    print(f"{'set':14}{'algorithm':18}{'rival':9}{'measure':9}{'ours':>9}{'theirs':>9}  ours less theirs")
    found: dict[str, list[float]] = {}
    for which in [which for which in TABLES if which in chosen] or TABLES:
        table = TABLES[which]
        for make in [make for make in CONTESTS if make.__name__ in chosen] or CONTESTS:
            if table.classes or make not in CLASSES_ONLY:
                for pair, z in compare(which, make.__name__, make(table), table):
                    found.setdefault(pair, []).append(z)
    print("\nall sets together: the sum of these standard errors over the root of their number")
    for pair, each in found.items():
        print(f"{pair:36}{together(each):+7.2f}  {sum(z > 1 for z in each)} of {len(each)} behind")


if __name__ == "__main__":
    main(set(sys.argv[1:]))

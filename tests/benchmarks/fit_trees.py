"""Trees, forests and boosting beside their rivals, in one run, on one thread.

    python tests/benchmarks/fit_trees.py [exact | binned | forest | boosting | stumps | predict | predict_boosted |
                                          memory] …

CPU time, the least of several turns; ours and theirs take turns, so that a busy machine troubles both alike. `ratio`
is ours over theirs. LightGBM, XGBoost and scikit-learn-intelex take part where they are
installed.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import importlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets, ensemble, tree

from app.ml.algorithms import adaboost, decision_tree, gradient_boosting, random_forest
from app.ml.contract.algorithm import Context, Data, Task

Run = Callable[[], Any]


def optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


lightgbm, xgboost, intel = optional("lightgbm"), optional("xgboost"), optional("sklearnex.ensemble")


def spent(run: Run) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def race(name: str, ours: Run, rivals: dict[str, Run], turns: int = 3) -> None:
    ours()  # what is compiled is compiled
    times: dict[str, list[float]] = {who: [] for who in ("ours", *rivals)}
    for _ in range(turns):
        for who, run in {"ours": ours, **rivals}.items():
            times[who].append(spent(run))
    mine = min(times["ours"])
    print(f"{name:44} ours {mine:.4f} s")
    for who in rivals:
        print(f"{'':20}{who:24}{min(times[who]):9.4f} s   ratio {mine / min(times[who]):.2f}", flush=True)


def classes(rows: int, columns: int, informative: int, seed: int, tests: int) -> tuple[Data, Data]:
    x, y = datasets.make_classification(
        rows + tests, columns, n_informative=informative, n_redundant=5, flip_y=0.05, random_state=seed
    )
    return _parts(Task.CLASSIFICATION, x, y, rows)


def numbers(rows: int, columns: int, seed: int, tests: int) -> tuple[Data, Data]:
    x, y = datasets.make_friedman1(rows + tests, columns, noise=1.0, random_state=seed)
    return _parts(Task.REGRESSION, x, y, rows)


def _parts(task: Task, x: Any, y: Any, rows: int) -> tuple[Data, Data]:
    return Data.of(task, x[:rows], y[:rows]), Data.of(task, x[rows:], y[rows:])


def ours(module: Any, params: Any, data: Data) -> Any:
    return module.fit(params, data, Context.of(0)).state


def exact() -> None:
    for depth in (10, None):
        data, _ = classes(100_000, 20, 10, 4, 100)
        params = decision_tree.DecisionTree(max_depth=depth, min_samples_leaf=1, splits="exact")
        peer = tree.DecisionTreeClassifier(max_depth=depth, random_state=0)
        race(
            f"exact tree, depth {depth}, 100,000 x 20",
            lambda p=params, d=data: ours(decision_tree, p, d),
            {"scikit-learn": lambda r=peer, d=data: r.fit(d.x, d.y)},
            turns=2,
        )
    data, _ = numbers(100_000, 20, 4, 100)
    params = decision_tree.DecisionTree(max_depth=10, min_samples_leaf=1, splits="exact")
    peer = tree.DecisionTreeRegressor(max_depth=10, random_state=0)
    race(
        "exact regression tree, depth 10",
        lambda: ours(decision_tree, params, data),
        {"scikit-learn": lambda: peer.fit(data.x, data.y)},
        turns=2,
    )


def small() -> None:
    for name, load in (("breast_cancer", datasets.load_breast_cancer), ("digits", datasets.load_digits)):
        x, y = load(return_X_y=True)
        data, params = Data.of(Task.CLASSIFICATION, x, y), decision_tree.DecisionTree(min_samples_leaf=1)
        peer = tree.DecisionTreeClassifier(random_state=0)
        race(
            f"exact tree, {name}",
            lambda p=params, d=data: ours(decision_tree, p, d),
            {"scikit-learn": lambda r=peer, d=data: r.fit(d.x, d.y)},
            turns=7,
        )


def one_tree() -> None:
    data, new = classes(100_000, 20, 10, 4, 10_000)
    params = decision_tree.DecisionTree(max_depth=10, min_samples_leaf=1, splits="binned")
    rivals: dict[str, Run] = {
        "HistGradientBoosting": lambda: ensemble.HistGradientBoostingClassifier(
            max_iter=1, max_depth=10, max_leaf_nodes=None, min_samples_leaf=1, early_stopping=False
        ).fit(data.x, data.y)
    }
    if lightgbm:
        rivals["LightGBM"] = lambda: lightgbm.LGBMClassifier(
            n_estimators=1, max_depth=10, num_leaves=1024, min_child_samples=1, n_jobs=1, verbose=-1
        ).fit(data.x, data.y)
    if xgboost:
        rivals["XGBoost"] = lambda: xgboost.XGBClassifier(n_estimators=1, max_depth=10, n_jobs=1).fit(data.x, data.y)
    race("binned tree, depth 10, 100,000 x 20", lambda: ours(decision_tree, params, data), rivals)
    state = ours(decision_tree, params, data)
    print(f"{'':20}error {(decision_tree.predict(params, state, new.x).argmax(axis=1) != new.codes).mean():.4f}")


def forest() -> None:
    data, new = classes(50_000, 20, 10, 5, 5_000)
    rivals: dict[str, Run] = {}
    if intel:
        for name, evaluated in {
            "scikit-learn-intelex": False,
            "the same, out of bag": True,
        }.items():  # as ours always is
            forest = intel.RandomForestClassifier(100, n_jobs=1, oob_score=evaluated)
            rivals[name] = partial(forest.fit, data.x, data.y)
    if lightgbm:
        rivals["LightGBM rf"] = lambda: lightgbm.LGBMClassifier(
            boosting_type="rf",
            n_estimators=100,
            num_leaves=1024,
            bagging_freq=1,
            bagging_fraction=0.632,
            feature_fraction_bynode=0.22,
            min_child_samples=1,
            n_jobs=1,
            verbose=-1,
        ).fit(data.x, data.y)
    for importance in (False, True):
        params = random_forest.RandomForest(importance=importance)
        race(
            f"forest of 100, 50,000 x 20, importance {importance}",
            lambda p=params: ours(random_forest, p, data),
            {} if importance else rivals,
            turns=2,
        )
    state = ours(random_forest, params, data)
    error = (random_forest.predict(params, state, new.x).argmax(axis=1) != new.codes).mean()
    print(f"{'':20}error {error:.4f}, out of bag {state.out_of_bag:.4f} ± {state.deviation:.4f}")


def boosting() -> None:
    params = gradient_boosting.GradientBoosting(l2=0)
    for name, (data, new) in {
        "classes": classes(200_000, 30, 15, 7, 20_000),
        "numbers": numbers(200_000, 30, 8, 20_000),
    }.items():
        kind = "Classifier" if data.task is Task.CLASSIFICATION else "Regressor"
        how = {"n_estimators": 100, "n_jobs": 1}
        peers: dict[str, Any] = {}
        if lightgbm:
            make = getattr(lightgbm, f"LGBM{kind}")
            peers["LightGBM"] = make(**how, verbose=-1)
            peers["LightGBM quantised"] = make(**how, verbose=-1, use_quantized_grad=True)
        if xgboost:
            make = getattr(xgboost, f"XGB{kind}")
            peers["XGBoost"] = make(**how, learning_rate=0.1, grow_policy="lossguide", max_leaves=31, max_depth=0)
        peers["HistGradientBoosting"] = getattr(ensemble, f"HistGradientBoosting{kind}")(early_stopping=False)
        race(
            f"boosting {name}, 100 x 31 leaves, 200,000 x 30",
            lambda d=data: ours(gradient_boosting, params, d),
            {who: lambda r=peer, d=data: r.fit(d.x, d.y) for who, peer in peers.items()},
            turns=2,
        )
        predictions = {"ours": gradient_boosting.predict(params, ours(gradient_boosting, params, data), new.x)}
        predictions |= {
            who: (peer.predict_proba if kind == "Classifier" else peer.predict)(new.x) for who, peer in peers.items()
        }
        losses = {who: _losses(predicted, new) for who, predicted in predictions.items()}
        for who, loss in losses.items():
            lead = loss - losses["ours"]
            error = lead.std() / np.sqrt(lead.size)
            print(f"{'':20}{who:24}held-out loss {loss.mean():.5f}, over ours {lead.mean():+.5f} ± {error:.5f}")


def _losses(response: Any, new: Data) -> Any:
    if new.task is Task.REGRESSION:
        return (response - new.y) ** 2
    return -np.log(np.maximum(response[np.arange(len(new.y)), new.codes], 1e-15))


def predict() -> None:
    for name, (data, _) in {
        "breast_cancer": _parts(Task.CLASSIFICATION, *datasets.load_breast_cancer(return_X_y=True), 568),
        "50,000 x 20": classes(50_000, 20, 10, 5, 100),
    }.items():
        params = random_forest.RandomForest(importance=False)
        state = ours(random_forest, params, data)
        peers: dict[str, Any] = {"scikit-learn": ensemble.RandomForestClassifier(100, n_jobs=1)}
        if lightgbm:
            peers["LightGBM rf"] = lightgbm.LGBMClassifier(
                boosting_type="rf",
                n_estimators=100,
                num_leaves=4096,
                bagging_freq=1,
                bagging_fraction=0.632,
                min_child_samples=1,
                n_jobs=1,
                verbose=-1,
            )
        if xgboost:
            peers["XGBoost rf"] = xgboost.XGBRFClassifier(
                n_estimators=100, n_jobs=1, max_depth=0, max_leaves=4096, grow_policy="lossguide", min_child_weight=0
            )
        for peer in peers.values():
            peer.fit(data.x, data.y)
        for rows in (1, 100, 10_000):
            x, times = np.resize(data.x, (rows, data.x.shape[1])), 1 if rows > 100 else 200 if rows == 1 else 20
            race(
                f"forest of 100, {name}, {rows} rows, {times} times",
                lambda p=params, s=state, x=x, t=times: [random_forest.predict(p, s, x) for _ in range(t)],
                {
                    who: lambda r=peer, x=x, t=times: [r.predict_proba(x) for _ in range(t)]
                    for who, peer in peers.items()
                },
            )


def predict_boosted() -> None:
    data, _ = classes(200_000, 30, 15, 7, 100)
    params = gradient_boosting.GradientBoosting()
    state = ours(gradient_boosting, params, data)
    how = {"n_estimators": 100, "n_jobs": 1}
    peers: dict[str, Any] = {}
    if lightgbm:
        peers["LightGBM"] = lightgbm.LGBMClassifier(**how, verbose=-1)
    if xgboost:
        peers["XGBoost"] = xgboost.XGBClassifier(
            **how, learning_rate=0.1, grow_policy="lossguide", max_leaves=31, max_depth=0
        )
    for peer in peers.values():
        peer.fit(data.x, data.y)
    for rows in (10_000, 200_000):
        x = data.x[:rows]
        race(
            f"boosting, 100 x 31 leaves, {rows} x 30",
            lambda x=x: gradient_boosting.predict(params, state, x),
            {who: lambda r=peer, x=x: r.predict_proba(x) for who, peer in peers.items()},
        )


def stumps() -> None:
    data, _ = classes(100_000, 20, 10, 4, 100)
    params = adaboost.AdaBoost(n_estimators=50)
    peer = ensemble.AdaBoostClassifier(n_estimators=50, random_state=0)
    race(
        "AdaBoost, 50 stumps, 100,000 x 20",
        lambda: ours(adaboost, params, data),
        {"scikit-learn": lambda: peer.fit(data.x, data.y)},
        turns=2,
    )


def memory() -> None:
    """What a fit takes beyond its input; see `fit_memory`."""
    specs = {"decision_tree": {"splits": "binned"}, "random_forest": {"n_estimators": 10}, "gradient_boosting": {}}
    script = Path(__file__).with_name("fit_memory.py")
    sets = [(classes, 200_000, 30, specs) for classes in (0, 2, 3)]
    for classes, rows, columns, specs in [*sets, (0, 50_000, 20, {"random_forest": {}})]:
        result = [part for name, params in specs.items() for part in (name, json.dumps(params))]
        command = [sys.executable, str(script), str(classes), str(rows), str(columns), *result]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for name, sizes in zip(specs, found, strict=True):
            peak, model = sizes["peak"], sizes["model"]
            print(
                f"{classes} classes {name:24} peak {peak / 1e6:.1f} MB, codes {rows * columns / 1e6:.1f} MB, "
                f"model {model / 1e6:.1f} MB, beyond the model {(peak - model) / (rows * columns):.2f} times the codes",
                flush=True,
            )


RACES = {
    "small": small,
    "exact": exact,
    "binned": one_tree,
    "forest": forest,
    "boosting": boosting,
    "stumps": stumps,
    "predict": predict,
    "predict_boosted": predict_boosted,
    "memory": memory,
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or RACES:
        began = time.process_time()
        RACES[chosen]()

"""Nearest rows by each metric over HTTP, named by item and by row number, as scipy finds them."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 3)) @ np.diag([1.0, 5.0, 0.2]) + [3.0, 10.0, 1.0]
NEW = X[:4] + 0.01
NAMES = [f"row {i:02d}" for i in range(60)]
SPANS = np.ptp(X, axis=0)
WHITE = np.linalg.inv(np.cov(X.T, bias=True))

DISTANCES = {
    "cosine": cdist(NEW, X, "cosine"),
    "range_euclidean": cdist(NEW / SPANS, X / SPANS),
    "range_manhattan": cdist(NEW / SPANS, X / SPANS, "cityblock"),
    "mahalanobis": cdist(NEW, X, "mahalanobis", VI=WHITE),
}


@pytest.fixture(scope="module")
def dataset(client):
    lines = [
        "name,a,b,c,y",
        *(
            f"{n},{a!r},{b!r},{c!r},{'ab'[i % 2]}"
            for i, (n, (a, b, c)) in enumerate(zip(NAMES, X.tolist(), strict=True))
        ),
    ]
    return client.post("/v1/datasets", content="\n".join(lines)).json()["id"]


@pytest.mark.parametrize("metric", DISTANCES)
def test_the_nearest_rows_are_those_of_scipy(client, done, dataset, metric):
    model = f"metric-{metric.replace('_', '-')}"
    body = {"model": model, "dataset": dataset, "target": "y", "item": "name", "features": ["a", "b", "c"]}
    algorithm = {"name": "knn", "metric": metric, "n_neighbors": 3}
    more = {"preprocessing": {"scaling": "none"}, "validation": {"test_fraction": 0}}
    done("train", body | more | {"algorithm": algorithm})
    rows = [dict(zip("abc", row, strict=True)) for row in NEW.tolist()]
    request = {"rows": rows, "n_neighbors": 3}
    found = client.post(f"/v1/models/{model}/neighbours", json=request).json()["neighbours"]
    expected = DISTANCES[metric]
    for row, near in enumerate(found):
        order = np.argsort(expected[row])[:3]
        assert [one["row"] for one in near] == order.tolist()
        assert [one["item"] for one in near] == [NAMES[place] for place in order]
        assert [one["target"] for one in near] == ["ab"[place % 2] for place in order]
    scale = found[0][0]["distance"] / expected[0].min()
    distances = [[one["distance"] for one in near] for near in found]
    np.testing.assert_allclose(distances, scale * np.sort(expected)[:, :3], rtol=1e-6)

"""Plots of model versions over HTTP: their list, their formats, their errors."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

SAMPLES = Path(__file__).parents[3] / "app" / "samples"
KINDS = {
    "forest": ("iris", {"target": "species", "algorithm": {"name": "random_forest", "n_estimators": 5}}),
    "path": ("diabetes", {"target": "progression", "algorithm": {"name": "lasso"}}),
    "tree": ("iris", {"algorithm": {"name": "agglomerative"}, "features": ["sepal_length_cm", "petal_width_cm"]}),
    "cells": ("iris", {"target": "species", "algorithm": {"name": "som", "grid_height": 3, "grid_width": 4}}),
    "mixture": ("iris", {"algorithm": {"name": "gmm"}, "features": ["sepal_length_cm", "petal_width_cm"]}),
    "map": ("iris", {"algorithm": {"name": "pca"}, "features": ["sepal_length_cm", "petal_width_cm"]}),
}
"""A training for each task: its table and its request."""
OFFERED = {
    "forest": {
        *("accuracy_rejection", "calibration_curve", "confidence_calibration", "confusion_heatmap"),
        *(
            "feature_importances",
            "partial_dependence",
            "precision_recall_curve",
            "roc_curve",
            "row_contributions",
            "training_curve",
            "tree_diagram",
        ),
    },
    "path": {
        *("coefficients", "normal_quantiles", "observed_predicted", "partial_dependence", "regularisation_path"),
        *("residuals_predicted", "row_contributions"),
    },
    "tree": {
        "cluster_cards",
        "cluster_sizes",
        "component_ellipses",
        "dendrogram_diagram",
        "projection_scatter",
        "silhouette",
    },
    "cells": {
        *("cluster_cards", "cluster_prototypes", "cluster_sizes", "component_ellipses", "map_planes"),
        *("projection_scatter", "silhouette", "training_curve", "u_matrix"),
    },
    "mixture": {"anomaly_histogram", "cluster_prototypes", "component_ellipses", "training_curve"},
    "map": {"component_loadings", "explained_variance", "projection_scatter"},
}
SVG, PNG = "image/svg+xml", "image/png"
ROC = "/v1/models/plots-forest/versions/1/plots/roc_curve"


@pytest.fixture(scope="module", autouse=True)
def _trained(client, done):
    for kind, (table, request) in KINDS.items():
        content = (SAMPLES / f"{table}.csv").read_bytes()
        dataset = client.post("/v1/datasets", params={"name": table}, content=content).json()["id"]
        done("train", request | {"model": f"plots-{kind}", "dataset": dataset})


def get(client, path, accept=None, **headers):
    return client.get(path, headers=({"Accept": accept} if accept else {}) | headers)


@pytest.mark.parametrize("kind", KINDS)
def test_a_version_lists_the_plots_that_it_has_data_for(client, kind):
    listed = client.get(f"/v1/models/plots-{kind}/versions/1/plots").json()
    assert (listed["model"], listed["version"]) == (f"plots-{kind}", 1)
    assert {card["name"] for card in listed["items"]} == OFFERED[kind]
    assert all(card["title"] and len(card["description"]) > 40 for card in listed["items"])


FIRST_KINDS = {name: kind for kind in reversed(KINDS) for name in OFFERED[kind]}
"""A kind of model that offers a plot, by the name of the plot."""


@pytest.mark.parametrize("kind", KINDS)
def test_each_plot_is_drawn_on_a_light_and_a_dark_background(client, kind):
    for name in (name for name, first in FIRST_KINDS.items() if first == kind):
        path = f"/v1/models/plots-{kind}/versions/1/plots/{name}"
        light, dark = (get(client, f"{path}?theme={theme}", SVG) for theme in ("light", "dark"))
        assert (light.status_code, dark.status_code) == (200, 200), light.text + dark.text
        title = client.get(path).json()["title"]["text"]
        assert all(title in "".join(ET.fromstring(one.content).itertext()) for one in (light, dark))
        assert light.content != dark.content


def test_the_format_is_that_of_accept(client):
    plain = get(client, ROC)
    assert plain.headers["content-type"] == "application/json"
    assert plain.json()["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert get(client, ROC, "text/html, */*;q=0.1").content == plain.content
    svg, png = get(client, ROC, SVG), get(client, ROC, "image/*;q=0.5, image/png")
    assert (svg.headers["content-type"].partition(";")[0], png.headers["content-type"]) == (SVG, PNG)
    assert png.content[:8] == b"\x89PNG\r\n\x1a\n"
    assert {one.headers["vary"] for one in (plain, svg, png)} == {"Accept"}


def test_an_unchanged_plot_is_not_sent_again(client):
    first = get(client, ROC, PNG)
    again = get(client, ROC, PNG, **{"If-None-Match": f'W/{first.headers["etag"]}, "other"'})
    assert (again.status_code, again.content) == (304, b"")
    for path, accept in ((ROC, SVG), (f"{ROC}?theme=dark", PNG)):
        other = get(client, path, accept, **{"If-None-Match": first.headers["etag"]})
        assert (other.status_code, other.headers["etag"] != first.headers["etag"]) == (200, True)


@pytest.mark.parametrize(
    ("path", "accept", "status", "code"),
    [
        (ROC.replace("roc_curve", "roc_kurve"), None, 404, "plot_not_found"),
        (ROC.replace("roc_curve", "dendrogram_diagram"), SVG, 404, "plot_not_found"),
        (ROC.replace("versions/1", "versions/9"), None, 404, "version_not_found"),
        (ROC.replace("plots-forest", "plots-nobody"), None, 404, "model_not_found"),
        (ROC, "application/pdf", 406, "not_acceptable"),
        (f"{ROC}?theme=sepia", None, 422, "invalid_request"),
        (ROC.replace("roc_curve", "Roc%20curve"), None, 422, "invalid_request"),
    ],
)
def test_what_is_wrong_is_named(client, path, accept, status, code):
    response = get(client, path, accept)
    assert (response.status_code, response.json()["code"]) == (status, code)


def test_the_closest_plot_is_suggested(client):
    detail = get(client, ROC.replace("roc_curve", "roc_kurve")).json()["detail"]
    assert "did you mean 'roc_curve'?" in detail
    assert "It has accuracy_rejection, " in detail


def test_plots_of_rows_remain_when_the_dataset_is_deleted(client, done):
    content = (SAMPLES / "iris.csv").read_bytes() + b"\n"
    dataset = client.post("/v1/datasets", params={"name": "plots-gone"}, content=content).json()["id"]
    done("train", {"model": "plots-gone", "dataset": dataset, "target": "species", "algorithm": {"name": "lda"}})
    scatter = "/v1/models/plots-gone/versions/1/plots/projection_scatter"
    before = client.get(scatter)
    assert client.delete(f"/v1/datasets/{dataset}").status_code == 204
    after = client.get(scatter)
    assert (after.status_code, after.content) == (200, before.content)
    points = after.json()["layer"][1]["data"]["values"]
    assert [point["row"] for point in points] == list(range(150))

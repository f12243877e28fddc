"""Harmonic classification over HTTP: names and labels beside edges, rows without a label, and rows without a class."""

import csv
import io

import pytest

PAGES = [f"page {i}" for i in (4, 2, 0, 1, 3)] + ["island a", "island b"]
LABELS = {"page 0": "spam", "page 4": "ham"}
LINKS = [(f"page {i}", f"page {i + 1}", 1.0) for i in range(4)] + [("island a", "island b", 1.0)]
URL = "/v1/models/harmonic-pages"


def csv_of(header, rows):
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows])
    return file.getvalue().encode()


@pytest.fixture(scope="module")
def upload(client):
    def send(header, rows):
        return client.post("/v1/datasets", content=csv_of(header, rows)).json()["id"]

    return send


def request(model, pages, links, **more):
    relations = {"form": "edges", "dataset": links, "first": "a", "second": "b", "value": "w", "meaning": "similarity"}
    body = {"model": model, "dataset": pages, "item": "page", "target": "kind", "relations": relations}
    return body | {"algorithm": {"name": "harmonic"}, "validation": {"test_fraction": 0}} | more


@pytest.fixture(scope="module")
def trained(done, upload):
    pages = upload(["page", "kind"], [[page, LABELS.get(page, "")] for page in PAGES])
    return done("train", request("harmonic-pages", pages, upload(["a", "b", "w"], LINKS)))


def test_pages_are_predicted_by_name_along_their_links(client, trained):
    rows = {"rows": [{"page": f"page {i}"} for i in range(5)]}
    found = client.post(f"{URL}/predict?include=harmonic_values", json=rows).json()
    spam = found["classes"].index("spam")
    shares = [row[spam] for row in found["probabilities"]]
    assert shares == pytest.approx([1, 0.75, 0.5, 0.25, 0], abs=1e-9)
    assert found["predictions"] == ["spam", "spam", found["classes"][0], "ham", "ham"]
    summary = client.get(f"{URL}/versions/1/report").json()["summary"]
    assert (summary["labelled_rows"], summary["unlabelled_rows"], summary["undetermined_rows"]) == (2, 5, 2)
    labels = {PAGES[one["row"]]: one.get("class") for one in summary["labels"]}
    assert labels == {"page 1": "spam", "page 3": "ham", "page 2": found["classes"][0]} | dict.fromkeys(PAGES[5:])


def test_a_page_that_no_label_reaches_has_no_class(client, trained):
    rows = {"rows": [{"page": "island a"}, {"page": "page 1"}]}
    found = client.post(f"{URL}/predict?include=determined", json=rows).json()
    assert found["predictions"] == [None, "spam"]
    assert found["outputs"]["determined"] == [False, True]
    unknown = client.post(f"{URL}/predict", json={"rows": [{"page": "nowhere"}]})
    assert (unknown.status_code, unknown.json()["errors"][0]["code"]) == (422, "unknown_item")


def test_labels_that_are_held_out_stay_in_the_graph(client, done, upload):
    """Two rings of pages with one link between them: held-out labels are those of their ring."""
    ring = [(f"p{r}{i}", f"p{r}{(i + s) % 20}", 1.0) for r in "ab" for i in range(20) for s in (1, 2)]
    pages = [[f"p{r}{i}", f"ring {r}" if i % 2 else ""] for i in range(20) for r in "ab"]
    links = upload(["a", "b", "w"], [*ring, ("pa0", "pb0", 0.1)])
    validation = {"test_fraction": 0.3, "method": "kfold", "folds": 3}
    done("train", request("harmonic-rings", upload(["page", "kind"], pages), links, validation=validation))
    report = client.get("/v1/models/harmonic-rings/versions/1/report").json()
    assert (report["rows_train"], report["rows_test"], report["rows_unlabelled"]) == (14, 6, 20)
    (accuracy,) = [metric for metric in report["test"] if metric["name"] == "accuracy"]
    assert accuracy["value"] == 1


def test_rows_with_columns_need_no_edges(client, done, upload):
    rows = [
        [x, y, "low" if (x, y) == (0, 0) else "high" if (x, y) == (9, 0.5) else ""] for x in range(10) for y in (0, 0.5)
    ]
    algorithm = {"name": "harmonic", "n_neighbors": 3, "priors": "uniform"}
    body = {"model": "harmonic-columns", "dataset": upload(["x", "y", "level"], rows), "target": "level"}
    done(
        "train",
        body | {"algorithm": algorithm, "validation": {"test_fraction": 0}, "preprocessing": {"scaling": "none"}},
    )
    found = client.post("/v1/models/harmonic-columns/predict", json={"rows": [{"x": 1.2, "y": 0.4}, {"x": 8, "y": 0}]})
    assert found.json()["predictions"] == ["low", "high"]


def test_priors_and_names_that_do_not_fit_are_refused_by_place(client, upload):
    pages = upload(["page", "kind"], [[page, LABELS.get(page, "")] for page in PAGES])
    links = upload(["a", "b", "w"], LINKS)
    algorithm = {"name": "harmonic", "priors": [0.5, 0.2, 0.3]}
    wrong = request("refused", pages, links, algorithm=algorithm, preprocessing={"scaling": "minmax"})
    response = client.post("/v1/jobs/train:validate", json=wrong)
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == ["/algorithm/priors", "/preprocessing"]


def test_a_dry_run_looks_at_the_rows_beside_relations(client, done, upload):
    pages = upload(["page", "kind"], [[f"p{i}", "ham" if i == 7 else "spam"] for i in range(210)])
    links = upload(["a", "b", "w"], [(f"p{i}", f"p{i + 1}", 1.0) for i in range(209)])
    body = request("harmonic-rare", pages, links)
    warnings = client.post("/v1/jobs/train:validate", json=body).json()["warnings"]
    (rare,) = [text for text in warnings if text.startswith("Classes with less than 1 % of 210 rows: 'ham' (1 row).")]
    done("train", body)
    assert rare in client.get("/v1/models/harmonic-rare/versions/1/report").json()["warnings"]

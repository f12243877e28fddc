"""Columns of text over HTTP: trained by a worker, reported by their terms, predicted from every kind of body."""

import io

import numpy as np
import pyarrow as pa
import pytest

ARROW = "application/vnd.apache.arrow.stream"
WORDS = {"sport": ["ball", "goal", "team", "match"], "law": ["vote", "court", "bench", "party"]}
RNG = np.random.default_rng(0)
LINES = [
    f'"{" ".join(RNG.choice([*WORDS[topic] * 3, "the", "of", "and"], 9))} № {place}",{topic},{place % 7}'
    for place in range(60)
    for topic in WORDS
]
TEXTS = ["The BALL, the goal!", "court and party", "zebra", "", None]
HOURS = {"target": "hour", "task": "regression"}
FLAGS = [("no_known_term", "note", [2, 3, 4])]


@pytest.fixture(scope="module")
def dataset(client):
    return client.post("/v1/datasets", content="\n".join(["note,topic,hour", *LINES])).json()["id"]


def body(dataset, model, algorithm=None, how=None, **more):
    request = {"model": model, "dataset": dataset, "target": "topic", "features": ["note"]}
    request |= {"algorithm": algorithm or {"name": "logistic"}, "preprocessing": {"text": {"note": how or {}}}}
    return request | more


def flags(found):
    return [(flag["code"], flag["column"], flag["rows"]) for flag in found["flags"]]


@pytest.fixture(scope="module")
def trained(client, done, dataset):
    done("train", body(dataset, "notes", features=["note", "hour"]))
    return "/v1/models/notes"


def test_the_report_names_the_terms_and_lists_other_columns_only(client, trained):
    report = client.get(f"{trained}/versions/1/report").json()
    (terms,) = report["terms"]
    assert terms["label"] == "sport"
    assert {one["term"] for one in terms["largest"][:4]} == set(WORDS["sport"])
    assert {one["term"] for one in terms["smallest"][:4]} == set(WORDS["law"])
    assert {one["column"] for one in terms["largest"]} == {"note"}
    assert (report["columns"], len(report["offsets"]), "summary" in report) == (["hour"], 1, False)
    (accuracy,) = (one["value"] for one in report["test"] if one["name"] == "accuracy")
    assert accuracy == 1
    inputs = client.get(f"{trained}/versions/1").json()["inputs"]
    assert [(one["name"], one["kind"]) for one in inputs] == [("hour", "numeric"), ("note", "text")]


def test_bodies_of_all_kinds_carry_texts(client, trained):
    rows = [{"note": text, "hour": 3} for text in TEXTS]
    found = client.post(f"{trained}/predict", json={"rows": rows}).json()
    assert found["predictions"][:2] == ["sport", "law"]
    assert flags(found) == FLAGS
    alone = [client.post(f"{trained}/predict", json={"rows": [row]}).json() for row in rows]
    assert [one["probabilities"][0] for one in alone] == found["probabilities"]
    columns = client.post(f"{trained}/predict", json={"columns": ["note", "hour"], "data": [[t, 3] for t in TEXTS]})
    assert columns.json()["probabilities"] == found["probabilities"]
    lines = 'hour,note\n3,"The BALL, the goal!"\n3,court and party\n3,zebra\n'
    by_csv = client.post(f"{trained}/predict", content=lines, headers={"Content-Type": "text/csv"}).json()
    assert by_csv["probabilities"] == found["probabilities"][:3]
    table = pa.table({"note": pa.array(TEXTS), "hour": pa.array([3.0] * 5)})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    sent = {"Content-Type": ARROW, "Accept": "application/json"}
    by_arrow = client.post(f"{trained}/predict", content=sink.getvalue(), headers=sent).json()
    assert (by_arrow["probabilities"], flags(by_arrow)) == (found["probabilities"], FLAGS)
    tensors = [
        {"name": "note", "shape": [2], "datatype": "BYTES", "data": TEXTS[:2]},
        {"name": "hour", "shape": [2], "datatype": "FP64", "data": [3, 3]},
    ]
    outputs = client.post("/v2/models/notes/infer", json={"inputs": tensors}).json()["outputs"]
    inferred = {one["name"]: one["data"] for one in outputs}
    assert inferred["predict"] == found["predictions"][:2]
    assert np.reshape(inferred["predict_proba"], (2, -1)).tolist() == found["probabilities"][:2]


def test_queries_vary_other_columns_beside_a_text(client, trained):
    request = {"fixed": {"note": "goal"}, "vary": [{"column": "hour", "values": [0, 3, 6]}]}
    swept = client.post(f"{trained}/sweep", json=request)
    assert swept.json()["predictions"] == ["sport"] * 3
    text = {"fixed": {"hour": 1}, "vary": [{"column": "note", "values": ["goal"]}]}
    refused = client.post(f"{trained}/sweep", json=text)
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/vary/0/column"]
    tangent = client.post(f"{trained}/linearise", json={"row": {"note": "goal", "hour": 1}})
    assert [one["column"] for one in tangent.json()["inputs"]] == ["hour"]
    row = {"note": "goal", "hour": 1}
    explained = client.post(f"{trained}/explain", json={"rows": [row]}).json()["explanations"][0]
    assert [part["column"] for part in explained["contributions"]] == ["hour", "note: goal"]
    assert client.post(f"{trained}/prepared_distances", json={"rows": [row]}).status_code == 409


def test_a_text_is_a_tensor_of_bytes(client, trained):
    described = client.get("/v2/models/notes").json()
    assert [(one["name"], one["datatype"]) for one in described["inputs"]] == [("hour", "FP64"), ("note", "BYTES")]
    assert [one["name"] for one in described["outputs"]] == ["predict", "predict_proba"]


def test_other_jobs_take_models_of_texts(client, done, dataset, trained):
    evaluated = done("evaluate", {"model": "notes", "dataset": dataset})
    assert evaluated["state"] == "succeeded"
    predicted = done("predict", {"model": "notes", "dataset": dataset, "keep": ["topic"]})
    assert predicted["state"] == "succeeded"
    many = {"validation": {"method": "bootstrap", "resamples": 10}}
    assert done("train", body(dataset, "notes-bootstrap", **many))["version"] == 1
    grid = [{"pointer": "/preprocessing/text/note/max_features", "values": [3, 100]}]
    folds = {"validation": {"method": "kfold", "folds": 3}}
    found = done("search", body(dataset, "notes-search", grid=grid, **folds))
    assert found["version"] == 1
    members = {"model": "none", "members": [{"model": "notes"}, {"model": "notes-search"}], "dataset": dataset}
    refused = client.post("/v1/jobs/combine", json=members)
    assert refused.status_code == 422
    assert "the text 'note', which no committee takes" in refused.text
    clusters = body(dataset, "none", {"name": "multinomial_mixture"}, grid=[])
    refused = client.post("/v1/jobs/search", json=clusters)
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/metric"]
    ranked = done("search", clusters | {"features": ["note", "hour"], "metric": "adjusted_rand"})  # not scaled
    assert "error" not in ranked["result"]["candidates"][0]


def test_counts_are_the_default_of_algorithms_of_counts(client, done, awaited, dataset):
    bayes = {"name": "generative_bayes", "density": "multinomial"}
    done("train", body(dataset, "note-bayes", bayes))
    mixture = {"name": "multinomial_mixture", "n_components": 2}
    done("train", body(dataset, "note-topics", mixture, {"stop_words": ["the", "of", "and"]}))
    for model in ("note-bayes", "note-topics"):
        found = client.post(f"/v1/models/{model}/predict", json={"rows": [{"note": text} for text in TEXTS]}).json()
        assert flags(found) == FLAGS
        assert found["predictions"][0] != found["predictions"][1]
        report = client.get(f"/v1/models/{model}/versions/1/report").json()
        tops = [{one["term"] for one in ranked["largest"][:4]} for ranked in report["terms"]]
        assert {frozenset(top) for top in tops} == {frozenset(words) for words in WORDS.values()}
    for model in ("note-bayes", "note-topics"):
        again = awaited(client.post(f"/v1/models/{model}/versions/1/reproduce"))
        assert again["state"] == "succeeded"
    rand = {one["name"]: one["value"] for one in report["train"]}["adjusted_rand"]
    assert rand == pytest.approx(1)
    cards = client.post("/v1/models/note-topics/clusters", json={}).json()
    assert [card["size"] for card in cards["clusters"]] == [60, 60]


@pytest.mark.parametrize("algorithm", ["linear_sgd", "ridge"])
def test_numbers_are_predicted_from_texts(client, done, dataset, algorithm):
    done("train", body(dataset, f"{algorithm}-hours", {"name": algorithm, "l2": 0.01}) | HOURS)
    report = client.get(f"/v1/models/{algorithm}-hours/versions/1/report").json()
    assert [one.get("label") for one in report["terms"]] == [None]
    assert report["terms"][0]["largest"][0]["weight"] > 0


def test_texts_need_smooth_losses_and_a_given_penalty(client, done, dataset):
    done("train", body(dataset, "note-hours", {"name": "linear_sgd"}) | HOURS)
    wrong = {"selection": "lowest_error", "penalise_intercept": True}
    refused = client.post("/v1/jobs/train", json=body(dataset, "none", {"name": "ridge", **wrong}) | HOURS)
    assert [one["pointer"] for one in refused.json()["errors"]] == [f"/algorithm/{name}" for name in wrong]
    refused = client.post("/v1/jobs/train", json=body(dataset, "none", {"name": "ridge", "l2": 0}) | HOURS)
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/algorithm/l2"]
    for name, value in {"solver": "online", "loss": "absolute"}.items():
        spec = {"name": "linear_sgd", name: value}
        refused = client.post("/v1/jobs/train", json=body(dataset, "none", spec) | HOURS)
        assert [one["pointer"] for one in refused.json()["errors"]] == ["/algorithm/solver"]
    refused = client.post("/v1/jobs/update", json={"model": "note-hours", "dataset": dataset})
    assert "It learns from the text 'note'" in refused.json()["errors"][0]["detail"]


def test_a_perceptron_learns_classes_from_texts(client, done, dataset):
    done("train", body(dataset, "note-signs", {"name": "perceptron"}, {"stop_words": ["the", "of", "and"]}))
    rows = [{"note": text} for text in TEXTS]
    found = client.post("/v1/models/note-signs/predict", json={"rows": rows}).json()
    assert flags(found) == FLAGS
    assert found["predictions"][0] != found["predictions"][1]
    report = client.get("/v1/models/note-signs/versions/1/report").json()
    assert {one["name"] for one in report["guarantees"]["certificates"]} >= {"vc_dimension", "mistakes"}
    assert all(one["largest"][0]["term"] in WORDS[one["label"]] for one in report["terms"])


def test_a_linear_svm_learns_classes_from_texts(client, done, dataset):
    spec = {"name": "svm", "kernel": "linear"}
    done("train", body(dataset, "note-margin", spec, {"stop_words": ["the", "of", "and"]}, features=["note", "hour"]))
    found = client.post("/v1/models/note-margin/predict", json={"rows": [{"note": t, "hour": 3} for t in TEXTS]}).json()
    assert (flags(found), found["predictions"][:2]) == (FLAGS, ["sport", "law"])
    (terms,) = client.get("/v1/models/note-margin/versions/1/report").json()["terms"]
    assert {one["term"] for one in terms["largest"][:4]} == set(WORDS[terms["label"]])
    curved = client.post("/v1/jobs/train", json=body(dataset, "none", {"name": "svm", "C": None}))
    assert [one["pointer"] for one in curved.json()["errors"]] == ["/algorithm/C", "/algorithm/kernel"]


def test_a_vocabulary_that_is_cut_is_reported(client, done, dataset):
    done("train", body(dataset, "note-short", how={"max_features": 5}))
    report = client.get("/v1/models/note-short/versions/1/report").json()
    assert any("the 5 most frequent ones are kept" in warning for warning in report["warnings"])


def test_requests_that_cannot_be_met_are_refused_with_every_fault(client, dataset):
    algorithm = {"name": "knn"}
    request = body(dataset, "none", algorithm) | {"features": ["hour"]}
    request["preprocessing"] = {"text": {"note": {}, "hour": {}, "notee": {}, "topic": {}}}
    refused = client.post("/v1/jobs/train", json=request)
    assert refused.status_code == 422
    found = {one["pointer"]: one["detail"] for one in refused.json()["errors"]}
    assert found["/preprocessing/text"].startswith("knn takes no columns of text: take one of generative_bayes, ")
    assert found["/preprocessing/text/note"] == "'note' is not among the features: add it, or leave it out here."
    assert "did you mean 'note'?" in found["/preprocessing/text/notee"]
    assert "'hour' is numeric: only texts and categories have terms." in found["/preprocessing/text/hour"]
    assert "is the target of the request" in found["/preprocessing/text/topic"]
    gaussian = client.post("/v1/jobs/train", json=body(dataset, "none", {"name": "generative_bayes"}))
    assert [one["pointer"] for one in gaussian.json()["errors"]] == ["/algorithm/density"]
    plain = body(dataset, "none") | {"preprocessing": {}}
    (error,) = client.post("/v1/jobs/train", json=plain).json()["errors"]
    assert (error["pointer"], "that names it in preprocessing.text" in error["detail"]) == ("/features/0", True)
    unset = client.post("/v1/jobs/train", json=body(dataset, "none", how={"ngram_range": [2, 1]}))
    assert unset.status_code == 422
    assert "/preprocessing/text/note" in {one["pointer"] for one in unset.json()["errors"]}


def test_texts_without_terms_fail_with_the_column(client, ended, dataset):
    job = ended("train", body(dataset, "none", how={"min_df": 1000}))
    assert job["state"] == "failed"
    assert "The training documents of the column 'note' have no terms" in job["error"]["detail"]

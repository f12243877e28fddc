"""A table as people have it becomes a good model: one upload, and one correction that the service itself proposes."""

import csv
import io
import re
import time

import numpy as np
import pytest

ROWS = 600
HEADER = ["", "Preis", "Fläche", "Rabatt", "Seit", "PLZ", "Zustand", "Garten"]
CODES = ["01069", "04103", "10115", "20095", "50667", "80331"]
CONDITIONS = ["schön", "mäßig", "renovierungsbedürftig"]


def german(number, digits=2):
    return f"{number:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def dirty():
    """Semicolons, decimal commas, euros, percentages, dates, codes, stray words, an index column and umlauts."""
    rng = np.random.default_rng(0)
    area, discount = rng.uniform(30, 180, ROWS), rng.integers(0, 25, ROWS) / 100
    days, code, condition = rng.integers(0, 4000, ROWS), rng.integers(0, 6, ROWS), rng.integers(0, 3, ROWS)
    garden = rng.integers(0, 2, ROWS)
    price = (
        20_000 + 3_000 * area * (1 - discount) - 8 * days
        + np.array([0, 40, 90, 70, 60, 120])[code] * 1_000 - 25_000 * condition + 30_000 * garden
        + rng.normal(0, 5_000, ROWS)
    )  # fmt: skip
    since = np.datetime64("2013-01-01") + days
    rows = [
        [
            str(place), f"{german(price[place])} €", german(area[place], 1), f"{german(100 * discount[place], 1)} %",
            since[place].item().strftime("%d.%m.%Y"), CODES[code[place]], CONDITIONS[condition[place]],
            "ja" if garden[place] else "nein",
        ]
        for place in range(ROWS)
    ]  # fmt: skip
    for place, column, word in (
        (17, 1, "auf Anfrage"),
        (40, 2, "n.b."),
        (41, 2, "-"),
        (99, 3, "?"),
        (200, 4, "unbekannt"),
    ):
        rows[place][column] = word
    return rows


def written(rows):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";", lineterminator="\r\n").writerows([HEADER, *rows])
    return text.getvalue().replace("€", "EUR").encode("latin-1")


def finished(client, job):
    deadline = time.monotonic() + 120
    while (result := client.get(f"/v1/jobs/{job['id']}").json())["state"] not in {"succeeded", "failed"}:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert result["state"] == "succeeded", result
    return result


@pytest.mark.usefixtures("worker")
def test_a_dirty_table_becomes_a_good_model(client):
    rows = dirty()
    refused = client.post("/v1/datasets?name=wohnungen", content=written(rows))
    assert refused.status_code == 422
    proposed = re.search(r"encoding=[a-z0-9-]+", refused.text)[0]  # the one correction
    dataset = client.post(f"/v1/datasets?name=wohnungen&{proposed}", content=written(rows)).json()

    kinds = {column["name"]: column["kind"] for column in dataset["columns"]}
    assert list(kinds.values()) == ["numeric"] * 4 + ["datetime", "categorical", "categorical", "categorical"]
    sheet = {column["name"]: column for column in dataset["columns"]}
    assert sheet["Preis"]["missing"] == 1
    assert "599 of 600 values are numbers; line 19 is not" in " ".join(sheet["Preis"]["warnings"])
    assert sheet["Fläche"]["missing"] == 2
    assert [level["value"] for level in sheet["PLZ"]["top_levels"]] == sorted(CODES, key=lambda code: (
        -sum(row[5] == code for row in rows), code))  # fmt: skip
    assert sheet["Rabatt"]["maximum"] <= 0.25

    requested = {"model": "wohnungen", "dataset": dataset["id"], "target": "Preis", "algorithm": {"name": "ridge"}}
    response = client.post("/v1/jobs/train", json=requested)
    assert response.status_code == 202, response.text
    job = finished(client, response.json())
    report = client.get(f"/v1/models/wohnungen/versions/{job['version']}/report").json()
    (r2,) = (metric["value"] for metric in report["test"] if metric["name"] == "r2")
    assert r2 > 0.97

    new = rows[:60]
    by_csv = client.post("/v1/models/wohnungen/predict", content=written(new), headers={"content-type": "text/csv"})
    assert by_csv.status_code == 200, by_csv.text
    typed = client.get(f"/v1/datasets/{dataset['id']}/rows?limit=60").json()
    by_json = client.post(
        "/v1/models/wohnungen/predict", json={"columns": typed["columns"], "data": typed["data"]}
    ).json()
    assert by_csv.json()["predictions"] == by_json["predictions"]
    assert by_csv.json()["flags"] == by_json["flags"]

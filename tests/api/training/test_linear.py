"""Linear regression as its users meet it: upload, train with functions of the columns, read the report, predict."""

import csv
import time
from pathlib import Path

import numpy as np
import pytest

NIST = Path(__file__).parents[2] / "ml" / "data" / "nist"


@pytest.fixture
def fitted(client, worker):
    """`fitted(csv, rows, **request)`: the report, and the response to a prediction of these rows."""

    def run(table, rows=None, **request):
        dataset = client.post("/v1/datasets", content=table, params={"name": "table"}).json()
        body = {
            "model": "linear-api",
            "dataset": dataset["id"],
            "target": "y",
            "algorithm": {"name": "linear"},
            "validation": {"test_fraction": 0},
            **request,
        }
        job = client.post("/v1/jobs/train", json=body)
        assert job.status_code == 202, job.text
        where = job.headers["location"]
        until = time.monotonic() + 300
        while (job := client.get(where).json())["state"] in {"queued", "running"} and time.monotonic() < until:
            time.sleep(0.1)
        if job["state"] != "succeeded":
            return job, None
        report = client.get(f"/v1/models/linear-api/versions/{job['version']}/report").json()
        version = {"version": job["version"]}  # the newest is known up to a second late
        predicted = client.post("/v1/models/linear-api/predict", params=version, json={"rows": rows or []}).json()
        return report, predicted

    return run


@pytest.mark.parametrize(
    ("name", "degree", "least"),
    [
        ("norris", 1, 8),
        ("longley", 0, 9),
        ("wampler1", 5, 6),
        ("wampler2", 5, 6),
        ("wampler3", 5, 6),
        ("wampler4", 5, 6),
        ("wampler5", 5, 6),
        ("filip", 10, 8),
    ],
)
def test_certified_results_reach_the_report(fitted, name, degree, least):
    """NIST StRD: significant digits of coefficients, errors and residual deviation, in the table's own units."""
    basis = [{"kind": "polynomial", "degree": degree}] if degree > 1 else []
    table = (NIST / f"{name}.csv").read_bytes()
    inputs = table.splitlines()[0].decode().split(",")[1:]  # named: whole numbers in order look like an identifier
    report, _ = fitted(table, features=inputs, preprocessing={"basis": basis})
    result = report["unscaled"]["summary"]
    certified = list(csv.reader((NIST / f"{name}.certified.csv").read_text().splitlines()))[1:]
    *terms, (_, deviation, _) = certified
    coef, errors = np.array([row[1:] for row in terms], float).T
    assert digits([result["intercept"], *result["coefficients"]], coef) >= least
    if float(deviation) > 0:
        assert digits([result["intercept_standard_error"], *result["standard_errors"]], errors) >= least
        assert digits(result["residual_standard_deviation"], float(deviation)) >= least
    if degree > 1:
        assert report["unscaled"]["columns"] == ["x", *(f"x ** {k}" for k in range(2, degree + 1))]
        assert report["columns"][1].startswith("((x ")


def digits(found, certified):
    return -np.log10(np.abs(np.asarray(found) / certified - 1).max() + 1e-16)


def test_raw_powers_of_filip_are_warned_of(fitted):
    """Without scaling the powers are those of the values: seven digits are left, and the report says why."""
    basis = [{"kind": "polynomial", "degree": 10}]
    report, _ = fitted((NIST / "filip.csv").read_bytes(), preprocessing={"basis": basis, "scaling": "none"})
    assert any("numerical rank 10" in warning and "ridge" in warning for warning in report["warnings"])


MEASURED = b"x,y,error\n" + b"".join(
    b"%d,%g,%g\n" % row for row in zip(range(5), [1.1, 1.9, 5.2, 9.8, 17.1], [0.1, 0.1, 0.2, 0.2, 0.4], strict=True)
)


def test_measured_errors_are_a_column(fitted):
    """B5.1, M = 3: the error of each row is known, so that chi2 measures the fit."""
    parabola = {"basis": [{"kind": "polynomial", "degree": 2}]}
    report, response = fitted(MEASURED, [{"x": 2.5}], sigma="error", preprocessing=parabola)
    result = report["unscaled"]["summary"]
    coef = [1.08085452, -0.15346133, 1.0348026]
    np.testing.assert_allclose([result["intercept"], *result["coefficients"]], coef, atol=6e-9)
    errors = [result["intercept_standard_error"], *result["standard_errors"]]
    np.testing.assert_allclose(errors, [0.09756361, 0.16445988, 0.04993235], atol=6e-9)
    assert (result["chi2"], result["q"]) == (pytest.approx(2.9637642, abs=6e-8), pytest.approx(0.22720965, abs=6e-9))
    np.testing.assert_allclose(np.sqrt(np.diag(result["covariance"])), errors, rtol=1e-12)
    assert response["predictions"] == pytest.approx([np.polyval(coef[::-1], 2.5)], rel=1e-7)


def test_formulas_and_a_function_of_the_target(fitted):
    """B5.3 and B5.4 together: the client sends the table's own columns and gets the target's own units."""
    x = np.linspace(0.5, 3, 30)
    y = np.exp(1 + 2 * np.cos(x) + 3 * np.log(x) + 4 * np.tanh(x**3))
    table = b"the x,y\n" + b"".join(b"%r,%r\n" % pair for pair in zip(x.tolist(), y.tolist(), strict=True))
    formulas = [f"{f}" for f in ("cos(`the x`)", "log(`the x`)", "tanh(`the x` ** 3)")]
    how = {
        "basis": [{"kind": "expression", "expression": text} for text in formulas],
        "keep_inputs": False,
        "target": "log",
    }
    report, response = fitted(table, [{"the x": 1.0}, {"the x": -1.0}], preprocessing=how)
    result = report["unscaled"]
    assert result["columns"] == formulas
    np.testing.assert_allclose(
        [result["summary"]["intercept"], *result["summary"]["coefficients"]], [1, 2, 3, 4], rtol=1e-9
    )
    assert response["predictions"][0] == pytest.approx(np.exp(1 + 2 * np.cos(1) + 4 * np.tanh(1)), rel=1e-9)
    assert {flag["code"] for flag in response["flags"]} == {"undefined", "outside_range"}


def test_a_formula_without_a_value_ends_the_job_with_its_rows(fitted):
    table = b"x,z,y\n1,1,1\n0,1,2\n2,3,3\n"  # of two columns, the data sheet cannot tell
    job, _ = fitted(table, preprocessing={"basis": [{"kind": "expression", "expression": "log(x * z)"}]})
    assert (job["state"], job["error"]["status"]) == ("failed", 422)
    assert "log(x * z): 1" in job["error"]["detail"]


def test_a_dry_run_finds_every_fault_of_the_functions(client):
    dataset = client.post("/v1/datasets", content=MEASURED.replace(b"\n", b",word\n"), params={"name": "table"}).json()
    request = {
        "model": "linear-api",
        "dataset": dataset["id"],
        "target": "y",
        "sigma": "error",
        "weights": "x",
        "features": ["x"],
        "algorithm": {"name": "linear"},
        "preprocessing": {
            "basis": [
                {"kind": "expression", "expression": "log(x"},
                {"kind": "expression", "expression": "x + z"},
                {"kind": "expression", "expression": "1 + 2"},
                {"kind": "polynomial", "columns": ["x", "y", "x"]},
            ]
        },
    }
    problem = client.post("/v1/jobs/train:validate", json=request).json()
    at = "/preprocessing/basis"
    assert {error["pointer"]: error["detail"] for error in problem["errors"]}[f"{at}/0/expression"].startswith(
        "At character 6:"
    )
    assert {error["pointer"] for error in problem["errors"]} == {
        *("/sigma", "/weights", "/features/0", f"{at}/0/expression", f"{at}/1/expression", f"{at}/2/expression"),
        *(f"{at}/3/columns/1", f"{at}/3/columns/2"),
    }


def test_too_many_columns_are_refused_before_anything_is_computed(client):
    header = ",".join([*(f"x{j}" for j in range(60)), "y"])
    table = f"{header}\n" + "\n".join(",".join(str(0.5 + (i * j) % 7) for j in range(61)) for i in range(9))
    dataset = client.post("/v1/datasets", content=table.encode(), params={"name": "wide"}).json()
    request = {
        "model": "linear-api",
        "dataset": dataset["id"],
        "target": "y",
        "features": [f"x{j}" for j in range(1, 60)],
        "algorithm": {"name": "linear"},
        "preprocessing": {"basis": [{"kind": "polynomial", "degree": 20}]},
    }
    (error,) = client.post("/v1/jobs/train:validate", json=request).json()["errors"]
    assert (error["pointer"], error["code"]) == ("/preprocessing/basis", "too_many_columns")

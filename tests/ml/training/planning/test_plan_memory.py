"""Memory that a plan states, beside what the job takes: nothing that is accepted runs out of it."""

import json
import os
import subprocess
import sys
from statistics import median

import pytest

from tests.ml.training.job_memory import LARGE, drawn, planned
from workers.trainers import _OWN


def lines_of(first: int, last: int) -> list[dict]:
    """Lines of `tests.ml.training.job_memory`, from a process for each half of the cases."""
    half = (first + last) // 2
    commands = [
        [sys.executable, "-m", "tests.ml.training.job_memory", str(start), str(stop)]
        for start, stop in ((first, half), (half, last))
    ]
    environment = os.environ | _OWN
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for command in commands]
    outputs = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    return [json.loads(line) for output in outputs for line in output.splitlines()]


def test_a_plan_is_within_the_limit_or_refused():
    made = [(case, planned(case)) for case in map(drawn, range(40))]
    accepted = [(case, each) for case, each in made if not isinstance(each, str)]
    assert all(each.memory_bytes <= case.memory_bytes == each.memory_limit for case, each in accepted)
    assert {each for _, each in made if isinstance(each, str)} == {"too_large"}
    assert any(each.batch_rows for _, each in accepted)


@pytest.mark.slow
def test_nothing_that_is_accepted_runs_out_of_memory():
    lines = lines_of(0, 200)
    refused = [line for line in lines if "refused" in line]
    accepted = [line for line in lines if "refused" not in line]
    assert [line for line in refused if line["refused"] != "too_large"] == []
    assert [line for line in accepted if line["state"] != "succeeded"] == []
    assert [line for line in accepted if line["estimate"] < line["peak"]] == []
    assert median(line["estimate"] / line["peak"] for line in accepted) <= 2
    assert len(lines) == 200
    assert min(len(accepted), len(refused)) >= 20
    assert any(line["batch_rows"] is not None for line in accepted)


@pytest.mark.slow
def test_many_rows_take_no_more_than_is_stated():
    """The memory of a row and of its cells counts here, not that of the process."""
    lines = lines_of(LARGE, LARGE + 16)
    assert [line for line in lines if line["state"] != "succeeded"] == []
    assert [line for line in lines if line["estimate"] < line["peak"]] == []
    assert len({line["case"][1]["name"] for line in lines}) > 6

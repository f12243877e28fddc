"""Whatever two projects do in any order, with the same names, each sees its own and nothing else."""

from uuid import uuid4

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from app.base.project_context import PROJECT
from app.schemas.keys import KeySpec, Scope

ROWS = {"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"]]}
PROJECTS, MODELS, NUMBERS = st.sampled_from(["red", "blue"]), st.sampled_from(["first", "second"]), st.integers(0, 2)


class TwoProjects(RuleBasedStateMachine):
    http = services = publish = None

    def __init__(self):
        super().__init__()
        run = uuid4().hex[:8]
        self.headers, self.ids = {}, {}
        for project in ("red", "blue"):
            made = self.services.keys.create_first(KeySpec(name="all", scopes=list(Scope)), f"{project}-{run}")
            self.headers[project] = {"Authorization": f"Bearer {made.secret}"}
            self.ids[project] = self.send(project, "GET", "/v1/me").json()["project"]
        with self.services.work.across_projects() as w:
            self.ids = {project: w.projects.ensure(name).id for project, name in self.ids.items()}
        self.datasets = {"red": {}, "blue": {}}
        self.models = {"red": {}, "blue": {}}
        self.published = {"red": set(), "blue": set()}

    def send(self, project, method, path, **options):
        return self.http.request(method, path, headers=self.headers[project], **options)

    @rule(project=PROJECTS, name=MODELS)
    def upload(self, project, name):
        made = self.send(project, "POST", f"/v1/datasets?name={name}&file_format=csv", content=b"a,b\n1,2\n3,4\n")
        self.datasets[project][made.json()["id"]] = name

    @rule(project=PROJECTS, other=PROJECTS, number=NUMBERS)
    def delete_dataset(self, project, other, number):
        known = list(self.datasets[other])
        if number < len(known):
            gone = self.send(project, "DELETE", f"/v1/datasets/{known[number]}")
            assert gone.status_code == (204 if project == other else 404)
            if project == other:
                del self.datasets[other][known[number]]

    @rule(project=PROJECTS, model=MODELS, number=NUMBERS)
    def publish_version(self, project, model, number):
        before = PROJECT.set(self.ids[project])
        made = self.publish(self.services.work, model, seed=number + (3 if project == "blue" else 0))
        PROJECT.reset(before)
        self.models[project].setdefault(model, []).append(made.version)
        self.published[project].add(made.digest)

    @rule(project=PROJECTS, model=MODELS)
    def delete_model(self, project, model):
        gone = self.send(project, "DELETE", f"/v1/models/{model}")
        assert gone.status_code == (204 if self.models[project].pop(model, None) else 404)

    @rule(project=PROJECTS, model=MODELS, number=NUMBERS)
    def move_alias(self, project, model, number):
        moved = self.send(project, "PUT", f"/v1/models/{model}/aliases/champion", json={"version": number + 1})
        assert moved.is_success == (number + 1 in self.models[project].get(model, ()))

    @rule(project=PROJECTS, model=MODELS)
    def predict(self, project, model):
        found = self.send(project, "POST", f"/v1/models/{model}/predict", json=ROWS)
        assert found.is_success == (model in self.models[project])
        assert not found.is_success or found.json()["digest"] in self.published[project]

    @invariant()
    def each_sees_its_own(self):
        for project in ("red", "blue"):
            datasets = self.send(project, "GET", "/v1/datasets").json()["items"]
            assert {each["id"]: each["name"] for each in datasets} == self.datasets[project]
            models = self.send(project, "GET", "/v1/models").json()["items"]
            assert {each["name"]: each["versions"] for each in models} == self.models[project]


@pytest.mark.usefixtures("stack")
def test_in_any_order(guarded, services, publish):
    machine = type("Bound", (TwoProjects,), {"http": guarded, "services": services, "publish": staticmethod(publish)})
    run_state_machine_as_test(
        machine,
        settings=budget(max_examples=4, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)),
    )

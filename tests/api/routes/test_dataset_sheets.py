"""Datasets with and without the data sheets of their columns."""

from app.ml.tables.data_sheet import Column

BRIEF = ("name", "kind", "count", "missing", "distinct")
TABLE = b"age,plan,at\n31,pro,2024-01-31\n44,,2024-02-01\n7.5,basic,\n"


def without_sheets(dataset):
    """As such a dataset is sent: counts only, and the defaults of all other fields."""
    brief = [Column(**{key: one.get(key) for key in BRIEF}) for one in dataset["columns"]]
    return dataset | {"columns": [one.model_dump(mode="json", exclude_none=True) for one in brief]}


def test_without_sheets_a_column_has_its_kind_and_its_counts(client):
    made = client.post("/v1/datasets", params={"name": "brief"}, content=TABLE).json()
    assert "median" in made["columns"][0]
    assert client.get(f"/v1/datasets/{made['id']}").json() == made
    expected = without_sheets(made)
    assert client.get(f"/v1/datasets/{made['id']}", params={"sheets": "false"}).json() == expected
    assert client.get("/v1/datasets", params={"name": "brief", "limit": 1}).json()["items"] == [made]
    listed = client.get("/v1/datasets", params={"name": "brief", "limit": 1, "sheets": "false"}).json()
    assert listed["items"] == [expected]
    assert client.get("/v1/datasets/nothing", params={"sheets": "false"}).status_code == 404


def test_columns_keep_their_order(client):
    names = [f"c{number}" for number in range(300)]
    table = f"{','.join(names)}\n{','.join('1' for _ in names)}\n".encode()
    made = client.post("/v1/datasets", content=table).json()
    brief = client.get(f"/v1/datasets/{made['id']}", params={"sheets": "false"}).json()
    assert [one["name"] for one in brief["columns"]] == names

"""Fixtures of tests of the core."""

import pytest


@pytest.fixture(scope="session")
def report_of():
    """The report of a training on columns of numbers and texts, by linear regression unless named otherwise."""
    import pyarrow as pa

    from app.ml.contract.columns import TableColumn
    from app.ml.training.planning.plan import plan
    from app.ml.training.planning.train_spec import TrainSpec
    from app.ml.training.train import train

    def run(columns, **spec):
        table = pa.table(columns)
        kinds = [("categorical" if pa.types.is_string(cells.type) else "numeric") for cells in table.columns]
        sheet = [
            TableColumn(name, kind, cells.null_count, len(cells.unique().drop_null()))
            for name, kind, cells in zip(table.column_names, kinds, table.columns, strict=True)
        ]
        expected = TrainSpec.model_validate({"algorithm": {"name": "linear"}} | spec)
        return train(plan(expected, sheet, table.num_rows), table, data_digest="sha256:0").report

    return run

"""Outcomes of one model on every path: bodies in any format, and jobs on files that were uploaded in any."""

import csv
import io
import json
import re
import tempfile
from datetime import UTC, datetime
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from app.base.errors import ValiantError
from app.formats.arrow import arrow_rows
from app.formats.csv import csv_rows
from app.formats.json import json_rows
from app.formats.tensor_requests import read_request
from app.ingest.parsing_child import parse
from app.ingest.protocol import Order
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits
from app.ml.kinds.job import Source
from app.ml.models.model import decode
from app.ml.tables.casting import kinds_wanted, recast_columns, recast_table
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from app.ml.training.versions.table_evaluation import column_faults
from app.schemas.datasets import Dataset
from app.services.jobs.submission import sheet

MAX_ROWS = 1000
REFUSED = "refused"


def uploaded(data, **options):
    """A dataset as its parser and the store leave it: its sheet, and its table."""
    limits = Limits(max_rows=10**6, max_columns=100, unpacked_bytes=1 << 24, chunk_bytes=1 << 20)
    order = Order(
        name="table",
        file_format=None,
        options=ReadOptions(**options),
        limits=limits,
        memory_bytes=1 << 30,
        seconds=60,
        file_bytes=1 << 24,
    )
    csv_limit = csv.field_size_limit()
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as chunks:
        file.write(data)
        file.flush()
        parsed = parse(order, file.fileno(), chunks)
        chunks.seek(0)
        payload = chunks.read()
    csv.field_size_limit(csv_limit)
    parts = [payload[chunk.offset : chunk.offset + chunk.length] for chunk in parsed.chunks]
    dataset = Dataset(
        id=uuid4(),
        name="table",
        file_format=parsed.reading.file_format,
        created_at=datetime.now(UTC),
        size_bytes=len(data),
        rows=parsed.rows,
        digest="sha256:0",
        columns=parsed.columns,
        reading=parsed.reading,
    )
    return sheet(dataset), pa.concat_tables(pa.ipc.open_stream(part).read_all() for part in parts)


def trained_on(data, algorithm="ridge", options=None, **spec):
    described, table = uploaded(data, **(options or {}))
    request = TrainSpec.model_validate({"target": "y", "algorithm": {"name": algorithm}} | spec)
    source = Source(described, iter([table])).used_as(request.kinds)
    planned = plan(request, source.sheet.columns, described.rows)
    made = train(planned, source.read(), data_digest=described.digest, reading=described.reading)
    return decode(made.blob)


def outcome(predicted):
    """Predictions and flags of rows."""
    flags = {(flag.code, flag.column, tuple(flag.rows.tolist())) for flag in predicted.flags}
    return [repr(value) for value in predicted.predictions], sorted(map(repr, flags))


def of_body(read, body, model, **limits):
    """The outcome of a request: its predictions and flags, or its refusal."""
    try:
        incoming = read(body, model, max_rows=MAX_ROWS, let_bad_rows_pass=False, **limits)
    except ValiantError:
        return REFUSED
    return outcome(model.predict(incoming.table))


def of_tensors(model, rows):
    """The outcome of an Open Inference request with a tensor for each column."""
    datatypes = {"numeric": "FP64", "boolean": "BOOL"}
    tensors = [
        {
            "name": column.name,
            "shape": [len(rows)],
            "datatype": datatypes.get(column.source_kind or column.kind, "BYTES"),
            "data": [row[column.name] for row in rows],
        }
        for column in model.inputs
    ]
    body = orjson.dumps({"inputs": tensors})
    try:
        read = read_request(body, len(body), model, max_rows=MAX_ROWS, max_depth=10)
    except ValiantError:
        return REFUSED
    return outcome(model.predict_raw(read.raw))


def of_job(model, data, **options):
    """The outcome of a job on an uploaded file; where it is refused with a remedy, on the file uploaded so."""
    described, table = uploaded(data, **options)
    columns = described.columns
    faults = list(column_faults(model, None, columns, described.rows))
    remedies = [re.search(r"kinds=({.*})", fault.detail) for fault in faults]
    if faults and all(remedies):
        for remedy in remedies:
            options["kinds"] = options.get("kinds", {}) | json.loads(remedy[1])
        return of_job(model, data, **options)
    if faults:
        return REFUSED
    used = recast_columns(columns, kinds_wanted(model, columns))
    return outcome(model.predict(recast_table(table, used)))


def parquet_of(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def stream_of(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def written(header, rows, delimiter=","):
    """The rows as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerows([header, *rows] if header else rows)
    return out.getvalue().encode()


def by_csv(model, body):
    return of_body(csv_rows, body, model, encoding=None)


def by_json(model, document):
    return of_body(json_rows, orjson.dumps(document), model, max_depth=10)


def by_arrow(model, table):
    return of_body(arrow_rows, stream_of(table), model, max_bytes=1 << 20)

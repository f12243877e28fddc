"""All settings, read once from VALIANT_… environment variables."""

from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30


class Settings(BaseSettings):
    """Everything that may differ from one deployment to the next. Sizes are bytes, times seconds."""

    model_config = SettingsConfigDict(env_prefix="VALIANT_", frozen=True, extra="ignore")

    # where things live
    data: Path = Field(Path("var"), description="Folder of the embedded servers and of uploads on their way.")
    database_url: SecretStr | None = Field(
        None,
        description="URL of Postgres, as postgresql://user@host:5432/database; null starts the embedded one. "
        "Without a password in the URL, libpq's PGPASSWORD or PGPASSFILE gives it.",
    )
    broker_url: SecretStr | None = Field(None, description="Redis that carries job ids; absent: the embedded one.")
    cache_url: SecretStr | None = Field(None, description="Redis that keeps model bytes; absent: the embedded one.")

    # the HTTP front end
    host: str = Field("127.0.0.1", description="Address the API listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port it listens on; 0: any free one.")
    hosts: str = Field(
        "",
        description="Host names under which clients reach the API, separated by commas, without scheme and port; "
        "localhost and IP addresses always work. `*` admits every name, also one that a web page rebinds to the API.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="What is worth a log line.")
    fast_path: bool = Field(
        True,
        description="Predictions skip the web framework, which costs more than they do; false gives the framework's "
        "way. The shortcut turns itself off, with a warning in the log, if uvicorn is of another version than tested.",
    )
    drain_seconds: float = Field(0, ge=0, description="Time between not-ready and shutdown.")
    upload_timeout_seconds: PositiveFloat = Field(60, description="Longest silence within an upload.")

    # limits on input
    max_upload_bytes: PositiveInt = Field(
        8 * GiB, description="Largest dataset file, in bytes, decompressed if it has a Content-Encoding."
    )
    max_body_bytes: PositiveInt = Field(
        32 * MiB, description="Largest body of any other request, in bytes, decompressed if it has a Content-Encoding."
    )
    max_json_depth: PositiveInt = Field(64, description="Deepest nesting of a JSON body.")
    max_rows: PositiveInt = Field(100_000_000, description="Most rows of a dataset.")
    max_columns: PositiveInt = Field(10_000, description="Most columns of a dataset.")
    max_predict_rows: PositiveInt = Field(100_000, description="Most rows of one prediction request.")
    max_predictions: PositiveInt = Field(1024, description="Predictions in flight, per API process; more are refused.")
    predict_threads: PositiveInt = Field(2, description="Large predictions computed at once, per API process.")
    max_waiting_predictions: PositiveInt = Field(16, description="Large ones that may wait; more are refused.")
    batch_rows: int = Field(0, ge=0, description="Most rows of several requests predicted together; 0: each alone.")
    batch_wait_seconds: float = Field(0, ge=0, description="How long the first of them waits for others.")
    max_queued_jobs: PositiveInt = Field(10_000, description="Jobs that may wait; more are refused.")

    # storage
    spool: Path | None = Field(None, description="Where uploads wait to be parsed; absent: `spool` in `data`.")
    reserve_bytes: int = Field(
        64 * MiB,
        ge=0,
        description="Room that `valiant up` sets aside on the disk of `data` for a database whose disk is full. "
        "Uploads and new jobs are refused while less than this is free; 0: neither.",
    )
    chunk_bytes: PositiveInt = Field(4 * MiB, description="Size of a stored chunk of a dataset or model, in bytes.")
    database_pool: PositiveInt = Field(10, description="Database connections per process.")
    cache_memory_bytes: PositiveInt = Field(256 * MiB, description="Cap of the embedded cache.")
    cache_timeout_seconds: PositiveFloat = Field(0.05, description="A slower cache is done without.")
    cache_value_bytes: PositiveInt = Field(16 * MiB, description="Larger models skip Redis.")
    model_memory_bytes: PositiveInt = Field(512 * MiB, description="Decoded models kept per process.")
    pointer_seconds: float = Field(
        1.0, ge=0, description="Longest time in which a move of an alias by another process goes unseen."
    )
    stale_seconds: float = Field(
        900, ge=0, description="How long warm models predict while the database is away; 0: not at all."
    )

    # jobs
    lease_seconds: PositiveFloat = Field(30, description="A running job unheard of for so long is taken up again.")
    beat_seconds: PositiveFloat = Field(1, description="How often a worker renews the lease of a running job.")
    sweep_seconds: PositiveFloat = Field(5, description="How often lost and forgotten jobs are looked for.")
    republish_seconds: PositiveFloat = Field(10, description="A queued job unclaimed for so long is announced again.")
    max_attempts: PositiveInt = Field(3, description="Attempts at a job whose workers or trainers die.")
    retry_backoff_seconds: PositiveFloat = Field(1, description="Pause before the second attempt; it doubles.")
    max_time_limit_seconds: PositiveFloat = Field(86_400, description="Longest time limit of a job, in seconds.")
    job_memory_bytes: PositiveInt = Field(4 * GiB, description="Memory of one training process.")
    worker_concurrency: PositiveInt = Field(
        1, description="Jobs one worker runs at once; what is free, an ensemble or a search may use."
    )
    worker_metrics_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="Port at which a worker serves its metrics, on `VALIANT_HOST`; 0: none. "
        "The second worker of `valiant up` takes the next port.",
    )
    beat_file: Path | None = Field(
        None,
        description="File whose time of modification a worker renews every second; null: no such file. `valiant up` "
        "gives one to each of its workers, and replaces a worker that does not renew it for `lease_seconds`.",
    )
    watchdog_seconds: PositiveFloat = Field(60, description="An idle worker that hears nothing for so long restarts.")
    worker_grace_seconds: float = Field(10, ge=0, description="Time a running job gets when a worker stops.")
    parse_memory_bytes: PositiveInt = Field(2 * GiB, description="Memory of one process that parses an upload.")
    parse_seconds: PositiveFloat = Field(3600, description="Longest time to parse an upload.")
    parse_concurrency: PositiveInt = Field(2, description="Uploads parsed at once, per API process; others wait.")

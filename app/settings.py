"""All settings, read once from VALIANT_… environment variables."""

from pathlib import Path

from pydantic import Field, PositiveFloat, PositiveInt, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30


class Settings(BaseSettings):
    """Everything that may differ from one deployment to the next. Sizes are bytes, times seconds."""

    model_config = SettingsConfigDict(env_prefix="VALIANT_", frozen=True, extra="ignore")

    # where things live; an absent address means the embedded server in `data`
    data: Path = Path("var")
    database_url: SecretStr | None = None
    broker_url: SecretStr | None = None
    cache_url: SecretStr | None = None

    # the HTTP front end
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    log_level: str = "INFO"
    drain_seconds: float = Field(0, ge=0, description="Time between not-ready and shutdown.")
    upload_timeout_seconds: PositiveFloat = Field(60, description="Longest silence within an upload.")

    # limits on input
    max_upload_bytes: PositiveInt = 8 * GiB
    max_body_bytes: PositiveInt = 32 * MiB
    max_json_depth: PositiveInt = 64
    max_rows: PositiveInt = 100_000_000
    max_columns: PositiveInt = 10_000
    max_predict_rows: PositiveInt = 100_000
    max_queued_jobs: PositiveInt = 10_000

    # storage
    chunk_bytes: PositiveInt = 4 * MiB
    database_pool: PositiveInt = 10
    cache_memory_bytes: PositiveInt = Field(256 * MiB, description="Cap of the embedded cache.")
    cache_timeout_seconds: PositiveFloat = 0.05
    cache_value_bytes: PositiveInt = Field(16 * MiB, description="Larger models skip Redis.")
    model_memory_bytes: PositiveInt = Field(512 * MiB, description="Decoded models kept per process.")
    pointer_seconds: float = Field(1.0, ge=0, description="How long an alias may be stale.")

    # jobs
    lease_seconds: PositiveFloat = 30
    beat_seconds: PositiveFloat = 1
    sweep_seconds: PositiveFloat = 5
    republish_seconds: PositiveFloat = Field(10, description="A queued job unclaimed for so long is announced again.")
    max_attempts: PositiveInt = 3
    retry_backoff_seconds: PositiveFloat = 1
    max_time_limit_seconds: PositiveFloat = 86_400
    job_memory_bytes: PositiveInt = 4 * GiB
    worker_concurrency: PositiveInt = 1
    watchdog_seconds: PositiveFloat = Field(60, description="An idle worker that hears nothing for so long restarts.")
    worker_grace_seconds: float = Field(10, ge=0, description="Time a running job gets when a worker stops.")
    parse_memory_bytes: PositiveInt = 2 * GiB
    parse_seconds: PositiveFloat = 3600

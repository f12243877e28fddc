"""All settings, read once from VALIANT_… environment variables."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from app.base.secret_files import SecretFiles
from app.base.validated_copy import ValidatedCopy

ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30


class Settings(ValidatedCopy, BaseSettings):
    """Everything that may differ from one deployment to the next. Sizes are bytes, times seconds."""

    model_config = SettingsConfigDict(env_prefix="VALIANT_", frozen=True, extra="ignore")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  not read
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  not read
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the files that `VALIANT_…_FILE` names."""
        return init_settings, env_settings, SecretFiles(settings_cls)

    @field_validator("cors_origins")
    @classmethod
    def _exact_origins(cls, listed: str) -> str:
        for origin in filter(None, listed.split(",")):
            if not ORIGIN.fullmatch(origin.strip()):
                raise ValueError("Write each origin as https://host or https://host:port, without a path or `*`.")
        return listed

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        for first, other in (("tls_cert", "tls_key"), ("oidc_issuer", "oidc_audience")):
            if (getattr(self, first) is None) != (getattr(self, other) is None):
                names = f"VALIANT_{first.upper()} and VALIANT_{other.upper()}"
                raise ValueError(f"{names} belong together: set both or neither.")
        return self

    @property
    def needs_keys(self) -> bool:
        """True if requests need a key."""
        return self.auth == "keys"

    # where things live
    data: Path = Field(Path("var"), description="Folder of the embedded servers, and of uploads while they are read.")
    database_url: SecretStr | None = Field(
        None,
        description="URL of Postgres, as postgresql://user@host:5432/database; null starts the embedded one. "
        "Without a password in the URL, libpq's PGPASSWORD or PGPASSFILE gives it.",
    )
    broker_url: SecretStr | None = Field(
        None, description="URL of the Redis that carries job ids; null starts the embedded one."
    )
    cache_url: SecretStr | None = Field(
        None, description="URL of the Redis that caches models; null starts the embedded one."
    )

    # the HTTP front end
    host: str = Field("127.0.0.1", description="Address that the API listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port that the API listens on; 0 takes any free one.")
    hosts: str = Field(
        "",
        description="Host names under which clients reach the API, separated by commas, without scheme and port; "
        "localhost and IP addresses always work. `*` admits every name, also one that a web page rebinds to the API.",
    )
    auth: Literal["auto", "keys", "none"] = Field(
        "auto",
        description="Whether requests need a key. keys: all but those of health and of the documentation; none: no "
        "request; auto: none, and only addresses of this machine are listened on.",
    )
    allow_anonymous: Literal["network"] | None = Field(
        None,
        description="network: requests from other machines need no key either, as behind a proxy that checks who they "
        "are; null: without keys only addresses of this machine are listened on.",
    )
    cors_origins: str = Field(
        "",
        description="Origins whose pages may use the API, separated by commas, such as https://app.example; "
        "no page of another origin may if it is empty.",
    )
    tls_cert: Path | None = Field(
        None, description="File of the certificate chain (PEM) of the TLS of the API; null: plain HTTP."
    )
    tls_key: Path | None = Field(None, description="File of the private key (PEM) of `VALIANT_TLS_CERT`.")
    oidc_issuer: str | None = Field(
        None,
        description="Address of an OpenID Connect provider whose tokens are accepted beside keys, as it names itself; "
        "null: there is none.",
    )
    oidc_audience: str | None = Field(
        None, description="Audience that a token must be for: the name of this service at `VALIANT_OIDC_ISSUER`."
    )
    oidc_projects_claim: str = Field(
        "valiant_projects", description="Claim of a token that lists the projects it is for."
    )
    oidc_role_claim: str = Field(
        "valiant_role", description="Claim of a token with its role, or several, as those of keys are named."
    )
    revocation_seconds: PositiveFloat = Field(
        1, description="Time in seconds between two readings of the keys that were revoked or have changed."
    )
    auth_stale_seconds: float = Field(
        300,
        ge=0,
        description="Time in seconds during which keys that a process knows are accepted while the database is away.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least severe level that is logged."
    )
    log_requests: float = Field(
        1,
        ge=0,
        le=1,
        description="Share of the requests with a status below 400 that are logged, drawn at random; those that are "
        "refused or fail are all logged.",
    )
    fast_path: bool = Field(
        True,
        description="Whether predictions take the fast request path, which skips the web framework; false: the "
        "framework's path alone. The fast path turns itself off, with a warning in the log, if uvicorn is "
        "of a version that it was not tested with.",
    )
    drain_seconds: float = Field(
        0, ge=0, description="Time in seconds between the first response of not ready and the end of the process."
    )
    request_grace_seconds: float = Field(
        25,
        ge=0,
        description="Time in seconds that open requests get to end when the API stops. Under `valiant up` 2, if it is "
        "not set.",
    )
    upload_timeout_seconds: PositiveFloat = Field(
        60,
        description="Longest time in seconds without a byte of a body; then it is refused with 408. After this time a "
        "body has to arrive with 1 KiB a second on average.",
    )

    # compiled code
    processor: str = Field(
        "auto",
        pattern=r"^[a-z0-9][a-z0-9_.-]*$",
        description="Processor that kernels are compiled for. auto: the highest of the classes x86-64-v4, x86-64-v3, "
        "x86-64-v2 whose instructions this one has, on ARM generic; native: all that this one has; or a name that LLVM "
        "knows. Machines of one class share compiled kernels and round alike: a cluster sets the lowest class of all.",
    )
    kernels: Path | None = Field(
        None,
        description="Folder of compiled kernels that is only read, as `valiant warm --out` fills it; null: the one in "
        "the package. Only root or the user of the service may be able to write to it.",
    )
    warm: bool = Field(
        True,
        description="Whether the API and `serve` load kernels and the models that aliases name before they are ready; "
        "false: each with the first request that needs it, which saves 65 MB of a process that gets none.",
    )

    # limits on input
    max_upload_bytes: PositiveInt = Field(
        8 * GiB, description="Largest dataset file, in bytes, decompressed if it has a Content-Encoding."
    )
    max_file_bytes: PositiveInt = Field(
        GiB, description="Largest file of a model, in bytes, decompressed if it has a Content-Encoding."
    )
    max_body_bytes: PositiveInt = Field(
        32 * MiB, description="Largest body of any other request, in bytes, decompressed if it has a Content-Encoding."
    )
    max_json_depth: PositiveInt = Field(64, description="Deepest nesting of a JSON body, in levels.")
    max_rows: PositiveInt = Field(100_000_000, description="Largest number of rows of a dataset.")
    max_columns: PositiveInt = Field(10_000, description="Largest number of columns of a dataset.")
    max_predict_rows: PositiveInt = Field(100_000, description="Largest number of rows of one prediction request.")
    max_predictions: PositiveInt = Field(
        1024,
        description="Largest number of prediction requests in progress in an API process; further ones are refused "
        "with 503.",
    )
    predict_threads: PositiveInt = Field(
        2, description="Number of predictions, large ones or of slow models, that an API process computes at once."
    )
    max_waiting_predictions: PositiveInt = Field(
        16,
        description="Largest number of large predictions that wait in an API process; further ones are refused with "
        "503.",
    )
    batch_rows: int = Field(
        0,
        ge=0,
        description="Largest number of rows of several requests that are predicted together; 0: each request is "
        "predicted alone.",
    )
    batch_wait_seconds: float = Field(
        0, ge=0, description="Longest time in seconds that a request waits for others to be predicted together with."
    )
    max_waiting_reviews: PositiveInt = Field(
        100_000, description="Largest number of rejected rows that wait for a label; further ones are refused with 429."
    )
    max_queued_jobs: PositiveInt = Field(
        10_000, description="Largest number of jobs that wait; further ones are refused with 429."
    )

    # storage
    spool: Path | None = Field(None, description="Folder where uploads wait to be parsed; null: `spool` in `data`.")
    reserve_bytes: int = Field(
        64 * MiB,
        ge=0,
        description="Space in bytes that `valiant up` reserves on the disk of `data` for a database whose disk is "
        "full. Uploads and new jobs are refused while less than this is free; 0: no space is reserved and "
        "nothing is refused.",
    )
    chunk_bytes: PositiveInt = Field(4 * MiB, description="Size of a stored chunk of a dataset or model, in bytes.")
    database_pool: PositiveInt = Field(10, description="Number of database connections of a process.")
    cache_memory_bytes: PositiveInt = Field(256 * MiB, description="Memory of the embedded cache, in bytes.")
    cache_timeout_seconds: PositiveFloat = Field(
        0.05, description="Longest time in seconds to wait for the cache; then the model comes from the database."
    )
    cache_value_bytes: PositiveInt = Field(
        16 * MiB, description="Size in bytes of the largest model that the cache keeps."
    )
    model_memory_bytes: PositiveInt = Field(
        512 * MiB, description="Memory in bytes of the decoded models that a process keeps."
    )
    pointer_seconds: float = Field(
        1.0,
        ge=0,
        description="Longest time in seconds until a process follows an alias that another process has moved.",
    )
    stale_seconds: float = Field(
        900,
        ge=0,
        description="Time in seconds during which models in memory predict while the database is away; 0: not at all.",
    )

    # jobs
    lease_seconds: PositiveFloat = Field(
        30, description="Time in seconds after which a running job begins again whose worker has not renewed its lease."
    )
    beat_seconds: PositiveFloat = Field(
        1, description="Time in seconds between two renewals of the lease of a running job."
    )
    sweep_seconds: PositiveFloat = Field(
        5, description="Time in seconds between two searches for jobs whose worker died or whose message was lost."
    )
    republish_seconds: PositiveFloat = Field(
        10, description="Time in seconds after which a queued job that no worker has claimed is published again."
    )
    max_attempts: PositiveInt = Field(
        3, description="Largest number of attempts at a job whose worker or training process dies."
    )
    retry_backoff_seconds: PositiveFloat = Field(
        1, description="Pause in seconds before the second attempt at a job; it doubles with each further one."
    )
    max_time_limit_seconds: PositiveFloat = Field(86_400, description="Longest time limit of a job, in seconds.")
    job_memory_bytes: PositiveInt = Field(4 * GiB, description="Memory limit in bytes of a job's process.")
    worker_concurrency: PositiveInt | None = Field(
        None,
        description="Number of jobs that a worker runs at once; null: one for each core that it may use, as far as "
        "memory has room for them, at most 8. A job uses cores that no other job needs.",
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
        description="File whose time of modification a worker that is ready, or an API, renews every second; null: no "
        "such file. `valiant up` gives one to each, and replaces a process that neither renews it nor computes "
        "anything for `lease_seconds`.",
    )
    watchdog_seconds: PositiveFloat = Field(
        60,
        description="Time in seconds after which an idle worker restarts that has received nothing from the broker, "
        "and after which a worker replaces a process of its own that neither responds nor computes anything.",
    )
    worker_grace_seconds: float = Field(
        10,
        ge=0,
        description="Time in seconds that a running job gets to finish when its worker stops; then it begins again on "
        "another. Under `valiant up` 2, if it is not set.",
    )
    parse_memory_bytes: PositiveInt = Field(
        2 * GiB, description="Memory limit in bytes of a process that parses an upload."
    )
    parse_seconds: PositiveFloat = Field(3600, description="Longest time in seconds to parse an upload.")
    parse_concurrency: PositiveInt = Field(
        2,
        description="Number of uploads that an API process parses at once; others wait, and projects take turns. One "
        "more is parsed of a project that has none among them.",
    )

    # pictures
    plot_seconds: PositiveFloat = Field(20, description="Limit on the processor time in seconds of drawing a plot.")
    plot_memory_bytes: PositiveInt = Field(
        GiB,
        description="Limit in bytes on the memory that the process that draws pictures of plots may reserve; it "
        "reserves about 600 MiB, and uses a fifth of that.",
    )

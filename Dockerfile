# One image for the API, the worker and the migration: `valiant <command>`.
# Without servers: VALIANT_DATABASE_URL, VALIANT_BROKER_URL and VALIANT_CACHE_URL say where they are.
# A release names the base by digest: `docker build --build-arg PYTHON=python:3.12-slim@sha256:… .`
ARG PYTHON=python:3.12-slim

FROM ${PYTHON} AS build
WORKDIR /src
RUN python -m venv /opt/valiant
COPY requirements.lock ./
RUN /opt/valiant/bin/pip install --no-cache-dir --no-compile --only-binary=:all: --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY app ./app
COPY workers ./workers
COPY migrations ./migrations
RUN /opt/valiant/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation .
RUN ["/opt/valiant/bin/valiant", "warm", "--out"]
RUN /opt/valiant/bin/pip uninstall --yes setuptools pip
# Bytecode by the hash of its source, not by the time of its file: two builds have the same bytes.
RUN find /opt/valiant -name __pycache__ -prune -exec rm -r {} + \
 && PYTHONHASHSEED=0 python -m compileall -q --invalidation-mode unchecked-hash /opt/valiant/lib

FROM ${PYTHON}
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Valiant" \
      org.opencontainers.image.description="Trains, certifies and serves classical machine-learning models over REST." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin valiant \
 && install --directory --owner=valiant /var/lib/valiant
COPY --from=build /opt/valiant /opt/valiant
ENV PATH=/opt/valiant/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TMPDIR=/var/lib/valiant \
    VALIANT_DATA=/var/lib/valiant \
    VALIANT_HOST=0.0.0.0 \
    VALIANT_AUTH=keys \
    VALIANT_WORKER_METRICS_PORT=9000
VOLUME /var/lib/valiant
WORKDIR /var/lib/valiant
USER 10001:10001
EXPOSE 8000 9000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=8 \
  CMD ["valiant", "health"]
ENTRYPOINT ["valiant"]
CMD ["api"]

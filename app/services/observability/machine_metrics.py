"""Prometheus metrics of the machine that a process runs on: room on the disk, and the certificate of TLS."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.base.settings import Settings
from app.processes.disk_space import free, size


class Machine(Collector):
    """Bytes of the disk of VALIANT_DATA, and the time when the certificate of VALIANT_TLS_CERT expires."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def collect(self) -> Iterator[Metric]:
        data, reserve = self._settings.data, self._settings.reserve_bytes
        yield Gauge("valiant_disk_free_bytes", "Free bytes of the disk of VALIANT_DATA.", free(data))
        yield Gauge("valiant_disk_size_bytes", "Size of that disk in bytes.", size(data))
        yield Gauge("valiant_disk_reserve_bytes", "Free bytes below which uploads and jobs are refused.", reserve)
        if self._settings.tls_cert is not None and (expiry := read_expiry(self._settings.tls_cert)) is not None:
            help_text = "When the certificate of VALIANT_TLS_CERT expires, in seconds since 1970."
            yield Gauge("valiant_certificate_expiry_timestamp_seconds", help_text, expiry)


def read_expiry(chain: Path) -> float | None:
    """When the first certificate of a chain to expire does so, in seconds since 1970; None where nothing can read it.

    It is read with the package `cryptography`, which the extra `oidc` and the image bring.
    """
    try:
        from cryptography import x509  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    try:
        certificates = x509.load_pem_x509_certificates(chain.read_bytes())
    except (OSError, ValueError):
        return None
    return min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)

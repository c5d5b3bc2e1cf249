"""Optional dependencies: reports, clusters, the service and more."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from bandanna._core.types import InputError

EXTRAS = {
    "report": ("altair", "jinja2", "vl_convert"),
    "cluster": ("distributed",),
    "digits": ("sklearn",),
    "signatures": ("cryptography",),
    "warehouse": ("ibis", "duckdb", "pyarrow"),
    "tracing": (
        "opentelemetry.exporter.otlp.proto.http",
        "opentelemetry.instrumentation.fastapi",
        "opentelemetry.sdk",
    ),
    "client": ("httpx",),
    "openfeature": ("httpx", "openfeature.contrib.provider.ofrep", "openfeature.track"),
    "service": (
        *("alembic", "cryptography", "fastapi", "httptools", "httpx"),
        *("prometheus_client", "psycopg", "sqlalchemy", "uvicorn"),
        *(() if sys.platform == "win32" else ("uvloop",)),  # there is none for Windows
    ),
}
"""Packages by the name of what asks for them: ``pip install 'bandanna[report]'``."""

NAMES = {
    "ibis": "ibis-framework",
    "openfeature.contrib.provider.ofrep": "openfeature-provider-ofrep",
    "openfeature.track": "openfeature-sdk",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry.instrumentation.fastapi": "opentelemetry-instrumentation-fastapi",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "prometheus_client": "prometheus-client",
    "sklearn": "scikit-learn",
    "vl_convert": "vl-convert-python",
}
"""What is installed under another name than it is imported by."""


class MissingExtraError(InputError, ImportError):
    """Something that needs packages which are not installed."""


def missing_for(extra: str) -> list[str]:
    """Return the packages that an extra needs and that are not installed."""
    return [NAMES.get(name, name) for name in EXTRAS[extra] if not _installed(name)]


def need(extra: str, what: str) -> None:
    """Refuse to begin what cannot be finished, and say what to install."""
    missing = missing_for(extra)
    if missing:
        packages = " and ".join(missing)
        raise MissingExtraError(f"{what} needs {packages}: pip install 'bandanna[{extra}]'")


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False

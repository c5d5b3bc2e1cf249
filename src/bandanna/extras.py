"""What is installed only on request: studies, reports and clusters."""

from __future__ import annotations

from importlib.util import find_spec

from bandanna.types import BandannaError

EXTRAS = {
    "studies": ("joblib", "polars"),
    "report": ("altair", "jinja2", "polars", "vl_convert"),
    "cluster": ("distributed", "joblib", "polars"),
}
"""Packages by the name of what asks for them: ``pip install 'bandanna[studies]'``."""


class MissingExtraError(BandannaError, ImportError):
    """Something that needs packages which are not installed."""


def need(extra: str, what: str) -> None:
    """Refuse to begin what cannot be finished, and say what to install."""
    missing = [package for package in EXTRAS[extra] if not _installed(package)]
    if missing:
        packages = " and ".join(name.replace("_", "-") for name in missing)
        raise MissingExtraError(f"{what} needs {packages}: pip install 'bandanna[{extra}]'")


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False

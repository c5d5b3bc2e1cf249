"""A report as one HTML page that needs no network: its styles, charts and scripts are in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from altair.typing import ChartType

from bandanna._core.documents import write_whole
from bandanna._core.types import InputError
from bandanna.version import __version__


def render(template: str, charts: Mapping[str, ChartType], /, **values: object) -> str:
    """Return a page; the chart of each name is drawn in the figure ``chart-name``."""
    from jinja2 import Environment, PackageLoader

    specs = {name: chart.to_dict() for name, chart in charts.items()}
    pages = Environment(loader=PackageLoader("bandanna.report"), autoescape=True)
    return pages.get_template(template).render(
        version=__version__,
        bundle=_bundle(),
        # Inside a script element no text may look like the end of one.
        specs=json.dumps(specs, allow_nan=False).replace("</", "<\\/"),
        **values,
    )


def write_page(path: Path, page: str) -> None:
    """Write a page, whole or not at all."""
    try:
        write_whole(path, page)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}.") from None


def _bundle() -> str:
    """Return the JavaScript that draws charts, for a page that works offline."""
    import vl_convert

    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub is wrong
    return script.replace("</script", "<\\/script")

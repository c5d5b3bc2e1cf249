"""Charts, and a study's report."""

from __future__ import annotations

from bandanna._core.extras import need

need("report", "a chart or a report")

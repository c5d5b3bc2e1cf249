"""The former home of ``Problem``."""

from __future__ import annotations

from bandanna.spec import Problem

__all__ = ["Problem"]

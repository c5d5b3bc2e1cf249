"""Structured logs: one JSON object a line, with selected fields only."""

from __future__ import annotations

import json
import logging
import sys
import time


class JsonLines(logging.Formatter):
    """Writes the message and the facts given with it, and nothing else.

    Tracebacks are left out: their values could be someone's feedback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write a record as one line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        return json.dumps(line | getattr(record, "facts", {}))


def start_logs(level: str = "info") -> None:
    """Send the service's logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("bandanna.service")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(level.upper())

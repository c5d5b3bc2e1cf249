"""What a report says of an audit."""

from __future__ import annotations

import json
from pathlib import Path

from bandanna._core.types import JSON, InputError
from bandanna.report.answer import listed


def read_audit(path: Path) -> JSON:
    """Read what ``bandanna audit --json`` printed, and refuse anything else."""
    try:
        data: JSON = json.loads(path.read_text(encoding="utf-8"))
        for row in data["rows"]:
            _ = row["release"], float(row["claimed"]), float(row["audited"]), row["passed"]
            _ = float(row["audited_policy"]), data["note"]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not what bandanna audit --json prints.") from None
    return data


def audit_section(attacks: JSON) -> JSON:
    """Say what was attacked and what came of it."""
    rows = attacks["rows"]
    failed = sum(not row["passed"] for row in rows)
    verdict = "none was disproved" if not failed else f"{failed} were DISPROVED"
    names = listed(list(dict.fromkeys(row["release"] for row in rows)))
    sentence = f"We attacked {len(rows)} claims of the releases {names}: {verdict}."
    return {"sentence": sentence, "note": attacks["note"]}

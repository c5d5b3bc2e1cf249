"""The command line, called in the process of the tests: starting a new one takes seconds."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from bandanna.cli import main


def bandanna(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end and return its exit code and what it printed.

    What is between the program and its process (signals, closed pipes, a full disk, imports) is
    tested in processes of its own.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
    before = Path.cwd()
    os.chdir(cwd or before)
    try:
        with (
            patch.dict(os.environ),
            patch.object(sys, "argv", ["bandanna", *arguments]),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = _exit_code()
    finally:
        os.chdir(before)
    printed = []
    for stream in (out, err):
        stream.seek(0)
        printed.append(stream.read())
    return subprocess.CompletedProcess(arguments, code, *printed)


def _exit_code() -> int:
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0

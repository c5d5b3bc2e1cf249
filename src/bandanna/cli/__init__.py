"""The command line."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from bandanna._core.types import BandannaError
from bandanna.cli import (  # noqa: F401  # they add their commands
    answer,
    audit,
    certificates,
    doctor,
    ledger,
    phases,
    plan,
    reproduce,
    serve,
    simulate,
    size,
    study,
)
from bandanna.cli.help import ABOUT
from bandanna.cli.help import app as app
from bandanna.cli.options import Quiet, be_quiet
from bandanna.version import __version__


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bandanna {__version__}")
        raise typer.Exit


@app.callback(help=ABOUT)
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    be_quiet(quiet)


MOST_FRAMES = 5
"""Lines of the source that are shown where something went wrong here."""


def main() -> None:
    """Run the command line; a mistake of the user's gets a sentence, not a traceback."""
    sys.exit(_run())


def _run() -> int:
    """Run the command line and return how it ended, without the error that ended it."""
    try:
        app()
    except BandannaError as error:
        return _say(f"error: {error}", 2)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader closed the pipe
        return 141
    except (OSError, UnicodeEncodeError) as error:
        why = getattr(error, "strerror", None) or "the terminal cannot show a letter of it"
        return _say(f"error: cannot write the output: {why}", 2)
    except Exception as error:
        frames = "".join(traceback.format_tb(error.__traceback__)[-MOST_FRAMES:])
        return _say(
            f"{frames}error: {type(error).__name__}, by a fault of Bandanna's. What it says is "
            f"left out, as it may repeat private values; the lines above tell where it is.",
            1,
        )
    return 0


def _say(error: str, code: int) -> int:
    typer.echo(error, err=True)
    return code

"""The command line."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from bandanna._core.types import BandannaError
from bandanna.cli import (
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
from bandanna.cli.help import ByQuestion, one_screen
from bandanna.cli.options import Quiet, be_quiet
from bandanna.version import __version__

ABOUT = (
    "Run experiments and bandits on people's data, and say which option is best, without giving "
    "any one person's feedback away. Every command has --help with an example."
)

app = typer.Typer(
    cls=ByQuestion,
    help=ABOUT,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
one_screen(
    app,
    "bandanna answer visits.csv --arm plan --outcome visits --range 0,20 --clip \\",
    "  --epsilon 0.5 --reward",
)(answer.answer)
one_screen(
    app,
    "bandanna size --epsilon 0.5 --gap 30 --sd 145 --range 0,1000",
    "bandanna size --epsilon 0.5 --gap 0.02 --base-rate 0.05 --any-time",
)(size.size)
one_screen(
    app,
    "bandanna plan --arms 4 --rounds 1e5 --epsilon 0.5",
    "bandanna plan --arms 4 --epsilon 0.5 --regret 0.05    # how many rounds?",
)(plan.plan)
one_screen(
    app,
    "bandanna simulate --arms 4 --rounds 1e5 --epsilon 0.5",
    "bandanna simulate visits.csv --arm plan --outcome visits --range 0,20 --reward",
)(simulate.simulate)
app.add_typer(study.app, name="study")
app.add_typer(phases.app, name="phases")
app.add_typer(ledger.app, name="ledger")
one_screen(
    app,
    "bandanna serve --demo",
    "bandanna serve --database postgresql://user@host/bandanna --key-file key.txt",
)(serve.serve)
app.add_typer(serve.keys, name="keys")
app.add_typer(serve.db, name="db")
one_screen(app, "bandanna verify certificate.json --key public.pem")(certificates.verify)
one_screen(app, 'bandanna card certificate.json --set curator="A clinic" -o card.html')(
    certificates.card
)
one_screen(app, "bandanna audit --epsilon 0.5,1 --draws 2e5")(audit.audit)
app.add_typer(certificates.app, name="certificate")
one_screen(
    app, "bandanna reproduce --list", "bandanna reproduce one-bit --quick --chart bound.html"
)(reproduce.reproduce)
one_screen(app, "bandanna doctor")(doctor.doctor)


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

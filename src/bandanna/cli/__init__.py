"""The command line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bandanna._core.types import BandannaError
from bandanna.cli import (
    answer,
    audit,
    card,
    certificate,
    doctor,
    plan,
    regimes,
    reproduce,
    serve,
    simulate,
    study,
    verify,
)
from bandanna.cli.options import Quiet, be_quiet, can_be_quiet
from bandanna.version import __version__

app = typer.Typer(
    help="Differentially private adversarial bandits.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(can_be_quiet(plan.plan))
app.command()(answer.answer)
app.command()(can_be_quiet(simulate.simulate))
app.add_typer(study.app, name="study")
app.command()(can_be_quiet(audit.audit))
app.command()(verify.verify)
app.command()(card.card)
app.add_typer(certificate.app, name="certificate")
app.command()(can_be_quiet(reproduce.reproduce))
app.command()(regimes.regimes)
app.command()(serve.serve)
app.add_typer(serve.keys, name="keys")
app.add_typer(serve.db, name="db")
app.command()(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bandanna {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Differentially private adversarial bandits."""
    be_quiet(quiet)


def main() -> None:
    """Run the command line; a mistake of the user's gets a sentence, not a traceback."""
    try:
        app()
    except BandannaError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.exit(141)
    except (OSError, UnicodeEncodeError) as error:
        typer.echo(f"error: cannot write the output: {error}", err=True)
        sys.exit(2)

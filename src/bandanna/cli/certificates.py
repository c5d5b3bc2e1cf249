"""``bandanna certificate``, ``verify`` and ``card``: sign, check and explain certificates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import bandanna as bd
from bandanna._core.documents import errors_as, read_toml, to_text, write_whole
from bandanna._core.types import InputError
from bandanna.cli.help import command, group
from bandanna.cli.options import settings

commands = group("certificate", "Sign certificates, so that others know whose they are.")


@command("bandanna certificate keygen private.pem public.pem", of=commands)
def keygen(
    private: Annotated[
        Path, typer.Argument(help="Where to write the private key; keep it secret.")
    ],
    public: Annotated[Path, typer.Argument(help="Where to write the public key; publish it.")],
) -> None:
    """Make a pair of Ed25519 keys."""
    from bandanna.signatures import make_key, to_pem

    for path in (private, public):
        if path.exists():
            raise InputError(f"{path} exists already; keys are never overwritten.")
    if private.absolute() == public.absolute():
        raise InputError("the two keys need files of their own.")
    keys = to_pem(make_key())
    write_whole(private, keys.private, private=True)
    write_whole(public, keys.public)
    typer.echo(f"keep {private} secret, give {public} to everyone")


@command("bandanna certificate sign certificate.json --key private.pem", of=commands)
def sign(
    certificate: Annotated[Path, typer.Argument(help="A file written from policy.certificate().")],
    key: Annotated[Path, typer.Option(help="The private key.")],
) -> None:
    """Sign a certificate that verifies, in its file."""
    from bandanna.privacy.certificate import sign_certificate
    from bandanna.signatures import private_from_pem

    text = _verified(certificate)
    signed = sign_certificate(json.loads(text), private_from_pem(read(key)))
    write_whole(certificate, to_text(signed))
    typer.echo(f"signed {certificate}")


def read(path: Path) -> bytes:
    """Read a file, or say why not."""
    with errors_as(f"cannot read {path}"):
        return path.read_bytes()


def _verified(certificate: Path) -> str:
    """Read a certificate, or say what is wrong with it."""
    from bandanna.privacy.certificate import verify

    text = read(certificate).decode(errors="replace")
    wrong = [finding for finding in verify(text) if not finding.holds]
    if wrong:
        raise InputError(f"{certificate} does not verify: {wrong[0].entry}: {wrong[0].why}.")
    return text


@command("bandanna verify certificate.json --key public.pem")
def verify(
    certificate: Annotated[Path, typer.Argument(help="A file written from policy.certificate().")],
    key: Annotated[
        Path | None,
        typer.Option(help="Also check that the certificate is signed with this key."),
    ] = None,
) -> None:
    """Check a certificate by recomputing its guarantee."""
    from bandanna.privacy.certificate import line_of
    from bandanna.privacy.certificate import verify as check
    from bandanna.signatures import public_from_pem

    try:
        text = read(certificate).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {certificate}: {error}.") from None
    findings = check(text, key=None if key is None else public_from_pem(read(key)))
    for finding in findings:
        line = line_of(text, finding.entry)
        where = f"line {line}, {finding.entry}" if line else finding.entry
        typer.echo(f"{'holds' if finding.holds else 'WRONG'}  {where}: {finding.why}")
    good = all(finding.holds for finding in findings)
    typer.echo("yes: the guarantee follows from the numbers" if good else "no: not verified")
    raise typer.Exit(0 if good else 1)


@command('bandanna card certificate.json --set curator="A clinic" -o card.html')
def card(
    certificate: Annotated[Path, typer.Argument(help="A file written from policy.certificate().")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file that ends in .md, .html or .json."),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(help="A TOML file with answers to the questions at the end of a card."),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="The people's ledger: also say what else was spent on them.")
    ] = None,
    further: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=TEXT", help='An answer: --set curator="A clinic".'),
    ] = None,
) -> None:
    """Write what a certificate promises, in words for everyone.

    The card has the fields of the Differential Privacy Deployments Registry and a text for the
    people protected.
    """
    from bandanna.privacy.card import QUESTIONS, make_card

    text = _verified(certificate)
    given = _answers(answers) | {
        name: str(value) for name, value in settings(further, QUESTIONS).items()
    }
    written = None
    if ledger is not None:
        written = bd.Ledger(ledger).to_dict()
    made = make_card(json.loads(text), given, written)
    kind = ".md" if output is None else output.suffix
    if kind not in (".md", ".html", ".json"):
        raise InputError(f"a card is written as .md, .html or .json; got {str(output)!r}.")
    page = made.to_html() if kind == ".html" else made.to_markdown()
    if kind == ".json":
        page = json.dumps(made.to_dict(), indent=2) + "\n"
    if output is None:
        typer.echo(page)
        return
    with errors_as(f"cannot write {output}"):
        write_whole(output, page)
    missing = ", ".join(made.unanswered)
    typer.echo(f"wrote {output}; " + (f"not stated: {missing}" if missing else "all is stated"))
    if missing:
        typer.echo("The questions are at the end of the card; answer by --set or --answers FILE.")


def _answers(path: Path | None) -> dict[str, str]:
    """Read answers from a file."""
    if path is None:
        return {}
    given = read_toml(path)
    for name, value in given.items():
        if not isinstance(value, str):
            raise InputError(f"{path}: {name} must be a text in quotes; got {value!r}.")
    return given

"""``bandanna verify``: check a certificate by arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bandanna._core.types import InputError


def verify(
    certificate: Annotated[Path, typer.Argument(help="A file written from policy.certificate().")],
    key: Annotated[
        Path | None,
        typer.Option(help="Also check that the certificate is signed with this key."),
    ] = None,
) -> None:
    """Check a certificate by recomputing its guarantee."""
    from bandanna.cli.certificate import read
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

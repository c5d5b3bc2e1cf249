"""``bandanna certificate``: make keys, and sign certificates with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bandanna._core.types import InputError
from bandanna.cli.help import one_screen

app = typer.Typer(
    help="Sign certificates, so that others know whose they are.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@one_screen(app, "bandanna certificate keygen private.pem public.pem")
def keygen(
    private: Annotated[
        Path, typer.Argument(help="Where to write the private key; keep it secret.")
    ],
    public: Annotated[Path, typer.Argument(help="Where to write the public key; publish it.")],
) -> None:
    """Make a pair of Ed25519 keys."""
    from bandanna._core.documents import write_whole
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


@one_screen(app, "bandanna certificate sign certificate.json --key private.pem")
def sign(
    certificate: Annotated[Path, typer.Argument(help="A file written from policy.certificate().")],
    key: Annotated[Path, typer.Option(help="The private key.")],
) -> None:
    """Sign a certificate that verifies, in its file."""
    from bandanna._core.documents import to_text, write_whole
    from bandanna.privacy.certificate import sign_certificate, verify
    from bandanna.signatures import private_from_pem

    text = read(certificate).decode(errors="replace")
    wrong = [finding for finding in verify(text) if not finding.holds]
    if wrong:
        raise InputError(f"{certificate} does not verify: {wrong[0].entry}: {wrong[0].why}.")
    signed = sign_certificate(json.loads(text), private_from_pem(read(key)))
    write_whole(certificate, to_text(signed))
    typer.echo(f"signed {certificate}")


def read(path: Path) -> bytes:
    """Read a file, or say why not."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error}.") from None

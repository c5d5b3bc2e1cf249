"""``bandanna ledger``: one budget for a population, and what was spent of it."""

from __future__ import annotations

from typing import Annotated

import typer

import bandanna as bd
from bandanna._core.types import InputError, at_least, at_most
from bandanna.cli.help import command, group
from bandanna.cli.options import Json, columns_of
from bandanna.cli.output import print_json, print_table

commands = group("ledger", "Keep one budget for all that is asked about people.")

Place = Annotated[str, typer.Argument(help="A file, or the address of a database.")]


@command(
    "bandanna ledger start customers.ledger --budget 3",
    "bandanna ledger start customers.ledger --budget 3 --partition country=DE,FR,IT",
    of=commands,
)
def start(
    ledger: Place,
    budget: Annotated[float, typer.Option(help="Epsilon for all that is ever asked.")],
    delta: Annotated[
        float, typer.Option(help="With one, releases compose as zero-concentrated privacy.")
    ] = 0.0,
    partition: Annotated[
        list[str] | None,
        typer.Option(help="Populations of which everyone is in one at most. Repeat it."),
    ] = None,
) -> None:
    """Begin a ledger."""
    parts = {}
    for text in partition or []:
        name, equals, members = text.partition("=")
        if not equals:
            raise InputError(f"--partition is a name and populations, country=DE,FR; got {text!r}.")
        parts[name.strip()] = columns_of(members)
    begun = bd.Ledger.start(ledger, budget, delta, parts)
    typer.echo(
        f"Begun: epsilon {begun.budget:g} for everyone, of which {at_least(begun.left)} is left."
    )


@command('bandanna ledger spend customers.ledger --epsilon 0.5 --what "a survey"', of=commands)
def spend(
    ledger: Place,
    epsilon: Annotated[float, typer.Option(help="What it costs.")],
    what: Annotated[str, typer.Option(help="What is asked.")],
    population: Annotated[str, typer.Option(help="About whom.")] = "everyone",
    who: Annotated[str | None, typer.Option(help="Who asks; by default you.")] = None,
) -> None:
    """Write down what something else costs, before it reads."""
    kept = bd.Ledger(ledger)
    kept.spend(epsilon, what=what, population=population, who=who)
    typer.echo(f"Written. {at_least(kept.left_for(population))} is left for {population}.")


@command("bandanna ledger show customers.ledger", of=commands)
def show(
    ledger: Place,
    as_json: Json = False,
) -> None:
    """Show who asked what, when, what it cost, and what is left."""
    written = bd.Ledger(ledger).to_dict()
    if as_json:
        print_json(written)
        return
    rows = [
        [one["at"][:16], one["who"] or "-", one["what"], one["population"], f"{one['epsilon']:g}"]
        for one in written["entries"]
    ]
    together = f"epsilon {at_most(written['spent'])} of {written['budget']:g} is spent"
    together += f" at delta {written['delta']:g}" if written["delta"] else ""
    print_table("What was spent", ["when", "who", "what", "population", "epsilon"], rows, together)
    left = ", ".join(f"{name} {at_least(value)}" for name, value in written["left"].items())
    typer.echo(f"Left for one more release: {left}. {written['rule'].capitalize()}.")

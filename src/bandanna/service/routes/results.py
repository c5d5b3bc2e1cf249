"""What may be read of experiments: guarantee, results, released values, changes as they happen."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.audits.attack import NO_PROOF
from bandanna.policy.diagnostics import CONFIDENCE
from bandanna.privacy.certificate import with_history
from bandanna.privacy.sums import SumRelease
from bandanna.service.core import Core
from bandanna.service.errors import PROBLEMS
from bandanna.service.models import is_local, moment
from bandanna.service.policies import part_for, promised
from bandanna.service.routes import CanRead, CoreHere, ExperimentPath
from bandanna.service.views import AUDIT_DRAWS, LIVE_SECONDS, View
from bandanna.spec import expert_names
from bandanna.store import SqlStore
from bandanna.store.rows import Experiment, ReleaseRow

router = APIRouter(prefix="/v1/experiments/{experiment}", responses=PROBLEMS)

Segment = Annotated[str | None, Query(max_length=200, description="With segments: which one.")]


async def _part(
    experiment: ExperimentPath, core: CoreHere, _: CanRead, segment: Segment = None
) -> Experiment:
    return part_for(await core.find(experiment), segment)


PartHere = Annotated[Experiment, Depends(_part)]
"""The experiment of a path, or the segment that is asked for, with a key that may read it."""

PING_SECONDS = 4.0
"""After so long without news a line is sent, so that both ends know that the other is there."""


@router.get("/privacy")
async def privacy(
    experiment: ExperimentPath, core: CoreHere, _: CanRead, segment: Segment = None
) -> JSON:
    """Return what is promised, how far the ledger has come, and the certificate.

    With local privacy also what devices are told, and every change of it.
    With segments: of one of them, or of all together, without a certificate.
    """
    parts = await core.find(experiment)
    if segment is not None:
        parts = [part_for(parts, segment)]
    looked = await core.look_at_all(parts, _promise)
    promise, ledger, certificate = looked[0]
    if len(looked) > 1:
        promise = promised({part.segment: one[0] for part, one in zip(parts, looked, strict=True)})
        resumed = "resumed_from_older_copies"
        ledger = {name: sum(one[1][name] for one in looked) for name in ledger}
        ledger[resumed] = max(one[1][resumed] for one in looked)
        certificate = None
    device = await _told(core, parts[0]) if is_local(parts[0].settings) else None
    if device is not None and certificate is not None:
        certificate = with_history(certificate, device["history"])
    promise = core.stated(promise)
    person = parts[0].settings.get("per_person") is not None
    return {
        "about": "person" if person else "round",
        "guarantee": _guarantee(promise),
        "in_words": str(promise),
        "ledger": ledger,
        "copies": core.copies(ledger["resumed_from_older_copies"]),
        "device": device,
        "certificate": certificate,
    }


async def _told(core: Core, part: Experiment) -> JSON:
    """Return what devices are told, whose key signs it, and what they were told before."""
    history = await run_in_threadpool(core.store.device_parameter_history, part.id)
    return {
        **core.signer.parameters(part),
        "fingerprint": history[-1]["fingerprint"],
        "public_key": core.signer.public,
        "history": history,
    }


def _promise(view: View) -> tuple[Guarantee, dict[str, int], JSON | None]:
    policy, state = view.made, view.made.state
    counts = {
        "batches_begun": state.batches,
        "batches_released": state.released,
        "batches_open": view.committed.open,
        "decided": state.rounds,
        "resumed_from_older_copies": policy.resumed,
    }
    return policy.guarantee, counts, policy.certificate()


def _guarantee(promise: Guarantee) -> JSON:
    names = ("epsilon", "delta", "protects", "model", "mechanism", "because", "assumptions")
    return {name: getattr(promise, name) for name in names}


@router.get("/audit")
async def audit(experiment: ExperimentPath, core: CoreHere, _: CanRead) -> JSON:
    """Attack the experiment's release with made-up losses: a lower bound on its true epsilon."""
    first = (await core.find(experiment))[0]  # all segments have the same
    release = await core.look(first, lambda view: view.policy.recipe.release)
    if not isinstance(release, SumRelease):
        raise InputError("only releases of one value a batch are audited here.")
    audited = await core.audits.of(first, release)
    persons = first.settings.get("per_person") is not None
    return {
        "about": "one of a person's slots" if persons else "one round's feedback",
        "claimed": release.guarantee().epsilon,
        "audited": audited.epsilon,
        "draws": AUDIT_DRAWS,
        "significance": audited.significance,
        "note": NO_PROOF,
    }


@router.get("/results")
async def results(part: PartHere, core: CoreHere) -> JSON:
    """Return what releases say: shares over time, means with intervals, the regret bound."""
    return await core.results(part)


Confidence = Annotated[float, Query(ge=0.5, lt=1, description="Confidence of the answer.")]


@router.get("/answer")
async def answer(part: PartHere, core: CoreHere, confidence: Confidence = CONFIDENCE) -> JSON:
    """Say which arm is best, if that can be said, and what is known of each.

    It follows from released values. Intervals hold however often you look.
    """
    outcome = (await core.described(part.id)).outcome

    def said(view: View) -> JSON:
        if view.contextual is not None:
            return view.contextual.answer().to_dict()
        return view.policy.answer(confidence, outcome=outcome).to_dict()

    return await core.look(part, said)


ArmQuery = Annotated[str, Query(min_length=1, max_length=200)]


class ScorecardAnswer(BaseModel):
    """What a team decides from."""

    scorecard: JSON
    html: str = Field(description="The same as one HTML element; /page/scorecard.css is its style.")


@router.get("/scorecard")
async def scorecard(
    part: PartHere,
    core: CoreHere,
    control: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    confidence: Confidence = CONFIDENCE,
) -> ScorecardAnswer:
    """Compare every arm with the control, and say what to do: ship, keep, go on or stop.

    By default the control is the experiment's, or its first arm. It follows from released values;
    all of it holds together, however often you look.
    """
    return ScorecardAnswer(**await core.scorecard(part, control, confidence))


@router.get("/compare")
async def compare(
    part: PartHere,
    core: CoreHere,
    first: ArmQuery,
    second: ArmQuery,
    confidence: Confidence = CONFIDENCE,
) -> JSON:
    """Say how the second arm differs from the first: its mean minus the first one's."""
    outcome = (await core.described(part.id)).outcome

    def found(view: View) -> JSON:
        known = {str(name): name for name in view.policy.choices}
        one, other = (known.get(name, name) for name in (first, second))
        return view.policy.compare(one, other, confidence, outcome=outcome).to_dict()

    return await core.look(part, found)


@router.get(
    "/export",
    response_class=Response,
    responses={200: {"content": {"application/json": {}, "text/csv": {}}}},
)
async def export(
    experiment: ExperimentPath,
    core: CoreHere,
    key: CanRead,
    form: Annotated[Literal["json", "csv", "parquet"], Query(alias="format")] = "json",
) -> Response:
    """Return released values and arms, and nothing else, however many there are."""
    pages = export_pages(core.store, await core.current(experiment))
    core.note_soon(key.id, "exported", experiment, {"format": form})
    if form == "parquet":
        data = await run_in_threadpool(lambda: as_parquet([row for rows in pages for row in rows]))
        return Response(data, media_type="application/vnd.apache.parquet")
    if form == "csv":
        return StreamingResponse(csv_lines(pages), media_type="text/csv")
    return StreamingResponse(json_lines(pages), media_type="application/json")


@router.get("/releases")
async def releases(
    experiment: ExperimentPath,
    core: CoreHere,
    _: CanRead,
    segment: Segment = None,
    after: Annotated[int, Query(ge=0, le=2**62, description="Leave out so many.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JSON:
    """Return a page of released values; ask again with ``after`` set to ``next`` for more."""
    part = part_for(await core.current(experiment), segment)
    rows = await run_in_threadpool(core.store.releases, part.number, after, limit)
    more = after + limit if len(rows) == limit else None
    return {"releases": export_rows(part, rows), "next": more}


@router.get(
    "/live",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def live(
    part: PartHere,
    core: CoreHere,
    request: Request,
    once: Annotated[bool, Query(description="Send the present state alone.")] = False,
) -> StreamingResponse:
    """Send the experiment, and its results where they changed, as server-sent events."""
    still_open = request.state.still_open

    async def changes() -> AsyncIterator[str]:
        sent: dict[str, str] = {}
        quiet = 0.0
        while not core.closing.is_set() and still_open():
            now = await core.live.state(part)
            news = {name: text for name, text in now.items() if sent.get(name) != text}
            sent = now
            if news:
                inside = ", ".join(f'"{name}": {text}' for name, text in news.items())
                yield f"data: {{{inside}}}\n\n"
            elif quiet >= PING_SECONDS:
                yield ": nothing new\n\n"
            if once:
                return
            quiet = 0.0 if news or quiet >= PING_SECONDS else quiet + LIVE_SECONDS
            await asyncio.sleep(LIVE_SECONDS)

    return StreamingResponse(changes(), media_type="text/event-stream")


# --- released values as files ---------------------------------------------------------

# JSON, CSV and Parquet, page by page. Nothing but released values may leave in an export.

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell begins with that a spreadsheet runs; the last ones are as wide as two letters."""

PAGE = 1_000
"""Releases that are read at once."""


def export_pages(store: SqlStore, parts: Sequence[Experiment]) -> Iterator[list[JSON]]:
    """Return everything that was released, in pages.

    After each page others have as much time as it took: a large export keeps no decision waiting.
    """
    for part in parts:
        after = 0
        while True:
            began = time.monotonic()
            page = store.releases(part.number, after, PAGE)
            if rows := export_rows(part, page):
                yield rows
            if len(page) < PAGE:
                break
            after += PAGE
            time.sleep(min(0.1, time.monotonic() - began))


def json_lines(pages: Iterable[list[JSON]]) -> Iterator[str]:
    """Write pages as one JSON array."""
    begin = "["
    for rows in pages:
        yield begin + ", ".join(map(json.dumps, rows))
        begin = ", "
    yield "[]" if begin == "[" else "]"


def csv_lines(pages: Iterable[list[JSON]]) -> Iterator[str]:
    """Write pages as one CSV file."""
    header = True
    for rows in pages:
        yield as_csv(rows, header=header)
        header = False
    if header:
        yield as_csv([])


def export_rows(part: Experiment, releases: Sequence[ReleaseRow]) -> list[JSON]:
    """Return released values and what they are about: all that an export may hold."""
    experts = part.settings.get("experts")
    what = "arm" if experts is None else "expert"
    names = expert_names(experts) if experts is not None else part.settings["arms"]
    begin = {"segment": part.segment} if part.segment else {}
    by_context = part.settings.get("features") is not None  # then a release is of all arms
    return [
        begin
        | {
            "batch": release.batch,
            what: None if by_context else names[release.choice],
            "rounds": release.size,
            "released": release.value,
            "released_at": moment(release.released_at),
        }
        for release in releases
        if release.size > 0  # otherwise nothing in it counted, and nothing was released
    ]


def as_csv(rows: Sequence[JSON], *, header: bool = True) -> str:
    """Write rows as CSV; cells that a spreadsheet would run as formulas are quoted as text."""
    text = io.StringIO()
    writer = csv.writer(text)
    if header:
        names = rows[0] if rows else ["batch", "arm", "rounds", "released", "released_at"]
        writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue()


def as_parquet(rows: list[JSON]) -> bytes:
    """Write rows as Parquet."""
    import polars

    if not rows:
        raise InputError("nothing has been released yet.")
    data = io.BytesIO()
    flat = [{name: _flat(value) for name, value in row.items()} for row in rows]
    polars.DataFrame(flat).write_parquet(data)
    return data.getvalue()


def _flat(value: object) -> object:
    return json.dumps(value) if isinstance(value, list) else value


def _cell(value: object) -> object:
    text = _flat(value)
    return f"'{text}" if isinstance(text, str) and text.lstrip(" ")[:1] in FORMULAS else text

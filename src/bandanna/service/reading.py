"""The API for those who look: the promise, released values, and changes as they happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from bandanna._core.types import JSON, Guarantee, InputError
from bandanna.audits.attack import NO_PROOF
from bandanna.audits.releases import audit_release
from bandanna.policy.policy import Policy
from bandanna.privacy.certificate import with_history
from bandanna.privacy.sums import SumRelease
from bandanna.service.access import CanRead, CoreHere
from bandanna.service.core import Core
from bandanna.service.models import experiment_answer
from bandanna.service.parts import part_for, promised
from bandanna.service.results import as_csv, as_parquet, export_rows, summary
from bandanna.service.routes import PROBLEMS, ExperimentPath
from bandanna.service.signing import is_local
from bandanna.store.rows import Experiment

router = APIRouter(prefix="/v1/experiments/{experiment}", responses=PROBLEMS)

Segment = Annotated[str | None, Query(max_length=200, description="With segments: which one.")]

LIVE_SECONDS = 1.0
AUDIT_DRAWS = 200_000


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
    history = await run_in_threadpool(core.store.told, part.id)
    return {
        **core.signer.parameters(part),
        "fingerprint": history[-1]["fingerprint"],
        "public_key": core.signer.public,
        "history": history,
    }


def _promise(policy: Policy) -> tuple[Guarantee, dict[str, int], JSON | None]:
    state = policy.state
    counts = {
        "batches_begun": state.batches,
        "batches_released": state.released,
        "batches_open": len(state.open),
        "decided": state.rounds,
        "resumed_from_older_copies": policy.resumed,
    }
    return policy.guarantee, counts, None if policy.resumed else policy.certificate()


def _guarantee(promise: Guarantee) -> JSON:
    names = ("epsilon", "delta", "protects", "model", "mechanism", "because", "assumptions")
    return {name: getattr(promise, name) for name in names}


@router.get("/audit")
async def audit(experiment: ExperimentPath, core: CoreHere, _: CanRead) -> JSON:
    """Attack the experiment's release with made-up losses: a lower bound on its true epsilon."""
    first = (await core.find(experiment))[0]  # all segments have the same
    release = await core.look(first, lambda policy: policy.recipe.release)
    if not isinstance(release, SumRelease):
        raise InputError("only releases of one value a batch are audited here.")
    found = await run_in_threadpool(audit_release, release, draws=AUDIT_DRAWS)
    persons = first.settings.get("per_person") is not None
    return {
        "about": "one of a person's places" if persons else "one round's feedback",
        "claimed": release.guarantee().epsilon,
        "audited": found.epsilon,
        "draws": AUDIT_DRAWS,
        "significance": found.significance,
        "note": NO_PROOF,
    }


@router.get("/results")
async def results(
    experiment: ExperimentPath, core: CoreHere, _: CanRead, segment: Segment = None
) -> JSON:
    """Return what releases say: shares over time, means with intervals, the regret bound."""
    return await _results(core, part_for(await core.find(experiment), segment))


async def _results(core: Core, part: Experiment) -> JSON:
    released = await core.releases(part)
    return await core.look(part, lambda policy: summary(policy, released))


@router.get(
    "/export",
    response_class=Response,
    responses={200: {"content": {"application/json": {}, "text/csv": {}}}},
)
async def export(
    experiment: ExperimentPath,
    core: CoreHere,
    _: CanRead,
    form: Annotated[Literal["json", "csv", "parquet"], Query(alias="format")] = "json",
) -> Response:
    """Return released values and arms, and nothing else."""
    rows: list[JSON] = []
    for part in await core.find(experiment):
        rows += export_rows(part, await core.releases(part))
    if form == "csv":
        return Response(await run_in_threadpool(as_csv, rows), media_type="text/csv")
    if form == "parquet":
        data = await run_in_threadpool(as_parquet, rows)
        return Response(data, media_type="application/vnd.apache.parquet")
    return Response(json.dumps(rows), media_type="application/json")


@router.get(
    "/live",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def live(
    experiment: ExperimentPath,
    core: CoreHere,
    _: CanRead,
    segment: Segment = None,
    once: Annotated[bool, Query(description="Send the present state alone.")] = False,
) -> StreamingResponse:
    """Send the experiment and its results whenever they change, as server-sent events."""
    part = part_for(await core.find(experiment), segment)

    async def changes() -> AsyncIterator[str]:
        version = None
        while not core.closing.is_set():
            now = await core.current(experiment)
            if (newest := sum(one.version for one in now)) != version:
                version = newest
                shown = experiment_answer(now).model_dump()
                data = {"experiment": shown, "results": await _results(core, part)}
                yield f"data: {json.dumps(data)}\n\n"
            else:
                yield ": nothing new\n\n"
            if once:
                return
            await asyncio.sleep(LIVE_SECONDS)

    return StreamingResponse(changes(), media_type="text/event-stream")

"""An OpenFeature provider: flags are experiments, and tracking sends rewards.

>>> from openfeature import api
>>> from bandanna.openfeature import BandannaProvider
>>> api.set_provider(BandannaProvider("http://127.0.0.1:8000", "bdn_..."))
>>> api.shutdown()
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from bandanna._core.extras import need
from bandanna._core.types import BandannaError, InputError
from bandanna.client import Client

need("openfeature", "a provider for OpenFeature")

from openfeature.contrib.provider.ofrep import OFREPProvider  # noqa: E402
from openfeature.evaluation_context import EvaluationContext  # noqa: E402
from openfeature.provider import Metadata  # noqa: E402
from openfeature.track import TrackingEventDetails  # noqa: E402

logger = logging.getLogger("bandanna.openfeature")


class BandannaProvider(OFREPProvider):
    """Evaluates flags in the decision service, and sends it what is tracked.

    A tracked reward belongs to the event in the tracking details' ``event_id`` or, without one, in
    the evaluation context's: give each request an ``event_id`` in its context, and evaluating and
    tracking need nothing else. Other tracking events are left alone.

    As nothing in OpenFeature raises in the program that asks, feedback that is refused or cannot be
    sent is logged; what it was never is.

    Parameters
    ----------
    url, key
        Where the service is, and a key to it that may decide and reward.
    rewards, losses
        Names of the tracking events whose values are rewards, and losses.
    patience
        Seconds for which feedback is sent again while that may help.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        rewards: Collection[str] = ("reward",),
        losses: Collection[str] = ("loss",),
        patience: float = 5.0,
    ) -> None:
        super().__init__(url, headers_factory=lambda: {"Authorization": f"Bearer {key}"})
        self._client = Client(url, key, patience=patience)
        self._kinds = dict.fromkeys(rewards, "reward") | dict.fromkeys(losses, "loss")

    def get_metadata(self) -> Metadata:
        """Say who this is."""
        return Metadata(name="Bandanna")

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Send a tracked value as the feedback of its event."""
        kind = self._kinds.get(tracking_event_name)
        if kind is None:
            return
        details = tracking_event_details or TrackingEventDetails()
        context = evaluation_context or EvaluationContext()
        event = details.attributes.get("event_id", context.attributes.get("event_id"))
        try:
            if not isinstance(event, str) or details.value is None:
                raise InputError("tracking feedback needs a value and the event_id it belongs to.")
            self._client.reward(event, **{kind: details.value})
        except BandannaError as error:
            logger.warning("feedback was not counted: %s", error)

    def shutdown(self) -> None:
        """Close the connections."""
        self._client.close()
        self.session.close()

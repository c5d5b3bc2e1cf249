"""What devices are told in experiments with local privacy, signed with a key outside the database.

Pages pin the public key: nobody without the private one, who holds the database alone or sits in
between, can tell them other numbers. Every change, of numbers or of the key, is noted with the
experiment and shown with its certificate.
"""

from __future__ import annotations

import base64
from pathlib import Path

from bandanna import signatures
from bandanna._core.types import JSON
from bandanna.device import fingerprint, make_release, sign_release
from bandanna.service.models import moment
from bandanna.store import SqlStore
from bandanna.store.rows import Experiment, Outline
from bandanna.store.secret import private_text

LOCAL = "local"


def is_local(settings: JSON) -> bool:
    """Whether an experiment takes bits that devices released, and nothing else."""
    return settings.get("privacy") == LOCAL


class Signer:
    """The key, and what it signed."""

    def __init__(self, private: bytes) -> None:
        self._private = private
        public = signatures.public_key(private)
        self.public = base64.b64encode(public).decode()
        self.key_id = signatures.key_id(public)
        self._signed: dict[str, JSON] = {}

    def parameters(self, experiment: Experiment) -> JSON:
        """Return what travels with each decision: the release's numbers and their signature."""
        if experiment.id not in self._signed:
            release: dict[str, str] = experiment.settings["device_release"]
            signed = sign_release(self._private, experiment.id, release)
            self._signed[experiment.id] = {"release": release, **signed}
        return self._signed[experiment.id]

    def note(self, store: SqlStore, experiment: Experiment | Outline, now: float) -> None:
        """Note what devices are told, if it is not what they were told before."""
        store.record_device_parameters(experiment.id, self._line(experiment), moment(now))

    def note_all(self, store: SqlStore, now: float) -> None:
        """Note what devices are told in every experiment where it has changed."""
        local = [one for one in store.outlines(f'"{LOCAL}"') if is_local(one.settings)]
        latest = store.latest_device_parameters() if local else {}
        for one in local:
            line = self._line(one)
            if line.items() - latest.get(one.id, {}).items():
                self.note(store, one, now)

    def _line(self, experiment: Experiment | Outline) -> dict[str, str]:
        seen = fingerprint(experiment.id, experiment.settings["device_release"])
        return {"fingerprint": seen, "key_id": self.key_id}


def device_release(settings: JSON) -> dict[str, str]:
    """Return the numbers of a release for devices: fixed when the experiment is made."""
    low, high = settings.get("loss_range") or (0.0, 1.0)
    default = settings["default_loss"]
    return make_release(settings["epsilon"], loss_low=low, loss_high=high, default_loss=default)


def read_signer(path: Path) -> Signer:
    """Read the key from its file, in PEM form; it is made if there is none."""

    def make() -> str:
        return signatures.to_pem(signatures.make_key()).private.decode()

    text = private_text(path, "signing key", make)
    return Signer(signatures.private_from_pem(text.encode()))

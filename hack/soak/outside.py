"""What the soak's actuator makes outside: files in a folder, and a ledger of what was done."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from pathlib import Path

from actuator.interface import ExternalResource

__all__ = ["TYPE", "Outside"]

TYPE = "Soak::Thing"


class Outside:
    """One file for each thing, named after the uid that it was made for; it outlives managers."""

    def __init__(self, folder: Path) -> None:
        self._things = folder / "things"
        self._ledger = folder / "ledger"
        self._things.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()

    def make(self, uid: str) -> str:
        """The id of the thing of this uid, made if there is none."""
        with self._lock:
            found = self._of(uid)
            if found:
                return found[0].name
            thing = self._things / f"{uid}.{uuid.uuid4().hex[:8]}"
            with self._ledger.open("a") as ledger:
                ledger.write(f"{uid}\n")
            thing.touch()
            return thing.name

    def remove(self, uid: str) -> None:
        """Afterwards there is no thing of this uid."""
        with self._lock:
            for thing in self._of(uid):
                thing.unlink()

    def has(self, name: str) -> bool:
        """Whether there is a thing of this id."""
        return (self._things / name).exists()

    def all(self) -> list[ExternalResource]:
        """Everything that exists."""
        return [resource(thing.name) for thing in sorted(self._things.iterdir())]

    def made(self) -> Counter[str]:
        """How many things were ever made for each uid."""
        return Counter(self._ledger.read_text().split() if self._ledger.exists() else ())

    def _of(self, uid: str) -> list[Path]:
        return sorted(self._things.glob(f"{uid}.*"))


def resource(name: str) -> ExternalResource:
    """The thing of this id."""
    uid, _, _ = name.partition(".")
    return ExternalResource(type=TYPE, id=name, tags={"uid": uid})

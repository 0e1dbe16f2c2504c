"""Intruder: hostile objects beside a soak's own, all the time."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import TypeVar

from actuator.v1alpha1 import Infrastructure
from generic.kube.client import HttpClient
from generic.testing.drill.names import Names
from tests.adversary.judge import Report
from tests.adversary.lives import Lives

__all__ = ["Intruder"]

T = TypeVar("T")


class Intruder:
    """Creates hostile Infrastructures, one after the other, and deletes them; judged elsewhere."""

    def __init__(self, client: HttpClient, names: Names, seed: int) -> None:
        self._lives = Lives(client, names, seed, Report(), Infrastructure)
        self._finishing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def uids(self) -> set[str]:
        """Of all objects that were created."""
        return self._lives.uids

    def start(self) -> None:
        """Begins, and goes on until `finish`."""
        self._thread.start()

    def finish(self) -> None:
        """Returns when the last object has ended, or has had its time."""
        self._finishing.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._lives.close()

    def without(self, found: Mapping[str, T]) -> dict[str, T]:
        """The items by uid, without those of these objects."""
        return {uid: item for uid, item in found.items() if uid not in self.uids}

    def _run(self) -> None:
        for number in itertools.count():
            if self._finishing.wait(1.0):
                return
            self._lives.live("objects", number)

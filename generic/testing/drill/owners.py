"""Owners: plays the controllers whose finalizers are on an extension's objects in the seed.

They are alive and quick: what is being deleted they let go of. Only finalizers that an actuator
declares in `seed_objects`, only objects in namespaces of the drill. Machine objects have
somebody of their own (`generic.testing.drill.machines`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from actuator.errors import ApiError, NotFound
from actuator.interface import Actuator, Client, SeedObjects
from generic.kube.finalizers import Stale, patch_tested, take_off
from generic.library.machines import MACHINES

__all__ = ["Owners"]


class Owners:
    """Look again and again (`generic.testing.looking`); `client` needs all rights."""

    def __init__(
        self, client: Client, actuators: Sequence[Actuator[Any]], namespaces: Sequence[str]
    ) -> None:
        self._client = client
        self._groups = [
            group
            for actuator in actuators
            for group in actuator.seed_objects
            if group.finalizers and group.namespaced and group.resource.group != MACHINES.group
        ]
        self._namespaces = frozenset(namespaces)

    def look(self) -> None:
        """One look at everything."""
        for group in self._groups:
            with suppress(ApiError):  # the next group may do better
                self._let_go(group)

    def _let_go(self, group: SeedObjects) -> None:
        for obj in self._client.list(group.resource, label_selector=group.label_selector):
            meta = obj["metadata"]
            ours = meta.get("namespace") in self._namespaces
            held = set(group.finalizers) & set(meta.get("finalizers") or [])
            if ours and held and meta.get("deletionTimestamp") is not None:
                patch = take_off(held, meta["uid"], meta["finalizers"])
                where = (self._client, group.resource, meta["name"], meta["namespace"])
                with suppress(NotFound, Stale):
                    patch_tested(*where, patch)

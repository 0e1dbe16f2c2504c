"""Machine controllers for a drill's seed: one for each namespace that has machine objects."""

from __future__ import annotations

from actuator.errors import ApiError
from actuator.interface import Client, resource_of
from generic.kube.finalizers import Stale
from generic.library.machines import MACHINE_KINDS
from generic.testing.machinecontroller import MachineController

__all__ = ["MachineControllers"]


class MachineControllers:
    """Look after all machine objects, again and again (`generic.testing.looking`).

    Many shoots would need many threads otherwise, each of them asking all the time.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._controllers: dict[str, MachineController] = {}
        self._left: set[str] = set()  # looked at once more: to let go of the last Secrets

    def look(self) -> None:
        """One look at everything. Raises ApiError."""
        inhabited = self._inhabited()
        left = {ns for ns in inhabited | self._left if not self._look(ns)}
        self._left = inhabited | left

    def _inhabited(self) -> set[str]:
        kinds = [resource_of(cls.KIND) for cls in MACHINE_KINDS]
        return {obj["metadata"]["namespace"] for one in kinds for obj in self._client.list(one)}

    def _look(self, namespace: str) -> bool:
        if namespace not in self._controllers:
            self._controllers[namespace] = MachineController(self._client, namespace)
        try:
            self._controllers[namespace].look()
        except (ApiError, Stale):
            return False
        return True

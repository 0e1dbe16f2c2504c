"""The scenario extensions-down: no program of an extension runs in the seed.

gardener-resource-manager would start them again, so it ignores their ManagedResources meanwhile
(Gardener documentation, "gardener-resource-manager", ignoring a ManagedResource).
"""

from actuator.errors import ActuatorError
from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.library.managedresources.kind import MANAGED_RESOURCES
from generic.testing.landscape.caches import PODS
from generic.testing.landscape.gardenobjects import GARDEN
from generic.testing.polling import wait_while

SCENARIO = "extensions-down"
TEXT = "The programs of all extensions are stopped: no operation begins."
_DEPLOYMENTS = Resource("apps/v1", "deployments")
_PREFIX = "extension-"
"""How gardenlet names the namespace of a ControllerInstallation and its ManagedResource."""
_IGNORE = "resources.gardener.cloud/ignore"
_STOP_SECONDS = 120.0
"""Maximum time until the programs have ended, on a busy machine."""


def stop_extensions(seed: Client) -> None:
    """Stop the programs of all extensions, and keep them stopped.

    It returns when they have ended: until then they would begin operations. Raises ApiError, or
    ActuatorError if they do not end.
    """
    _set(seed, ignore="true", replicas=0)
    if left := wait_while(lambda: _pods(seed), _STOP_SECONDS, every=0.5):
        raise ActuatorError(f"pods still run after {_STOP_SECONDS:.0f} s: {', '.join(left)}")


def start_extensions(seed: Client) -> None:
    """Start them again. Raises ApiError."""
    _set(seed, ignore=None, replicas=1)


def _set(seed: Client, *, ignore: str | None, replicas: int) -> None:
    for deployment in seed.list(_DEPLOYMENTS):
        name = deployment["metadata"]["name"]
        namespace = deployment["metadata"]["namespace"]
        if namespace.startswith(_PREFIX):
            managed: Raw = {"metadata": {"annotations": {_IGNORE: ignore}}}
            seed.patch(MANAGED_RESOURCES, namespace.removeprefix(_PREFIX), GARDEN, managed)
            seed.patch(_DEPLOYMENTS, name, namespace, {"spec": {"replicas": replicas}})


def _pods(seed: Client) -> list[str]:
    metas = [pod["metadata"] for pod in seed.list(PODS)]
    return [meta["name"] for meta in metas if meta["namespace"].startswith(_PREFIX)]

"""Places: where objects of the garden have the provider configurations of each kind.

gardenlet copies those of a Shoot to the extension objects (Gardener documentation, "Extension
contract", and the API reference of core.gardener.cloud/v1beta1).
"""

from collections.abc import Iterator
from typing import Any

import attrs

from actuator.meta import Object, Raw
from generic.library.webhooks import garden
from generic.library.webhooks.objects import Secret

_POOLS = "spec.provider.workers[]"


@attrs.frozen
class Place:
    """The configurations of a kind: a field of each object at the path `holder`."""

    kind: str
    holder: str
    type_field: str | None
    """The field with the type beside the configuration; "": the type is that of the provider, None:
    only the label has it."""
    field: str = "providerConfig"
    """"" for objects without a configuration."""
    label: str = "provider.extensions"
    """The prefix of the label that Gardener sets on objects of a type (`LabelExtension…`)."""
    owner: str = "spec.provider"
    """The path of the object with the type of the provider and, in a Shoot, its workers."""
    of: type[Object] = garden.Shoot
    """The class of the objects."""
    reads: tuple[str, ...] = ()
    """The fields that are judged in objects without a configuration."""

    @property
    def is_single(self) -> bool:
        """Whether an object has at most one configuration of a type."""
        return not self.holder.startswith(_POOLS)

    @property
    def is_always_needed(self) -> bool:
        """Whether an absent configuration counts as an empty one, also without workers."""
        return self.kind == "Extension" or self.owner == "spec"


def _without_configuration(
    cls: type[Object], *reads: str, label: str = "provider.extensions"
) -> Place:
    return Place(cls.KIND.name, "", None, "", label, of=cls, reads=reads)


IN_SHOOT = (
    Place("Infrastructure", "spec.provider", "type", "infrastructureConfig"),
    Place("ControlPlane", "spec.provider", "type", "controlPlaneConfig"),
    Place("Worker", _POOLS, ""),
    Place(
        "OperatingSystemConfig",
        f"{_POOLS}.machine.image",
        "name",
        label="operatingsystemconfig.extensions",
    ),
    Place(
        "ContainerRuntime",
        f"{_POOLS}.cri.containerRuntimes[]",
        "type",
        label="containerruntime.extensions",
    ),
    Place("Network", "spec.networking", "type", label="networking.extensions"),
    Place("Extension", "spec.extensions[]", "type", label="extensions.extensions"),
)
IN_GARDEN = (
    *IN_SHOOT,
    Place("CloudProfile", "spec", "type", owner="spec", of=garden.CloudProfile),
    Place("NamespacedCloudProfile", "spec", None, of=garden.NamespacedCloudProfile),
    Place("Seed", "spec.backup", "provider", of=garden.GardenSeed),
    Place("BackupBucket", "spec", "", of=garden.GardenBackupBucket),
    _without_configuration(garden.Shoot),
    _without_configuration(Secret, "data", label="provider.shoot"),
    _without_configuration(garden.SecretBinding, "secretRef", "provider"),
    _without_configuration(garden.CredentialsBinding, "credentialsRef", "provider"),
)


def place_of(kind: type[Object]) -> Place:
    """Return the place of the configurations of a kind. Raises ValueError."""
    for place in IN_GARDEN:
        if place.kind == kind.KIND.name:
            return place
    raise ValueError(f"{kind.KIND.name}: no object of the garden has a configuration of this kind")


def configurations(place: Place, obj: Raw) -> Iterator[tuple[str, str, Any]]:
    """Yield the path and the type of each configuration, and the configuration or None.

    A shoot without workers needs only configurations of Extensions.
    """
    provider = dict(objects(obj, place.owner)).get(place.owner, {})
    is_needed = place.is_always_needed or provider.get("workers")
    for path, holder in objects(obj, place.holder):
        given = holder.get(place.field)
        if given is not None or is_needed:
            type = (holder if place.type_field else provider).get(place.type_field or "type", "")
            yield f"{path}.{place.field}", str(type), given


def objects(value: Raw, path: str, field: str = "") -> Iterator[tuple[str, Raw]]:
    """Yield each object at a path such as "spec.extensions[]", with its own path."""
    head, _, rest = path.partition(".")
    name = head.removesuffix("[]")
    where = f"{field}.{name}".lstrip(".")
    found = value.get(name)
    items = {where: found}
    if head != name:
        listed = found if isinstance(found, list) else []
        items = {f"{where}[{index}]": item for index, item in enumerate(listed)}
    for place, item in items.items():
        if isinstance(item, dict):
            yield from objects(item, rest, place) if rest else [(place, item)]

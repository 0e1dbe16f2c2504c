"""Places: where a Shoot has the provider configurations of each kind.

gardenlet copies them to the extension objects (Gardener documentation, "Extension contract", and
the API reference of core.gardener.cloud/v1beta1).
"""

from collections.abc import Iterator

import attrs

from actuator.meta import Raw

_POOLS = "spec.provider.workers[]"


@attrs.frozen
class Place:
    """The configurations of a kind: a field of each object at the path `holder`."""

    kind: str
    holder: str
    type_field: str
    """The field with the type beside the configuration; "": the type is that of the provider."""
    field: str = "providerConfig"
    label: str = "provider"
    """The prefix of the label that Gardener sets on Shoots of a type (`LabelExtension…`)."""

    @property
    def is_single(self) -> bool:
        """Whether a Shoot has at most one configuration of a type."""
        return not self.holder.startswith(_POOLS)


IN_SHOOT = (
    Place("Infrastructure", "spec.provider", "type", "infrastructureConfig"),
    Place("ControlPlane", "spec.provider", "type", "controlPlaneConfig"),
    Place("Worker", _POOLS, ""),
    Place(
        "OperatingSystemConfig", f"{_POOLS}.machine.image", "name", label="operatingsystemconfig"
    ),
    Place(
        "ContainerRuntime", f"{_POOLS}.cri.containerRuntimes[]", "type", label="containerruntime"
    ),
    Place("Network", "spec.networking", "type", label="networking"),
    Place("Extension", "spec.extensions[]", "type", label="extensions"),
)


def objects(value: Raw, path: str, field: str = "") -> Iterator[tuple[str, Raw]]:
    """Yield each object at a path such as "spec.extensions[]", with its own path."""
    head, _, rest = path.partition(".")
    name = head.removesuffix("[]")
    where, found = f"{field}.{name}".lstrip("."), value.get(name)
    items = {where: found}
    if head != name:
        listed = found if isinstance(found, list) else []
        items = {f"{where}[{index}]": item for index, item in enumerate(listed)}
    for place, item in items.items():
        if isinstance(item, dict):
            yield from objects(item, rest, place) if rest else [(place, item)]

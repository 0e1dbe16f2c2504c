"""Rules of an author in Python, about objects of the garden."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import attrs

from actuator.codec import decode
from actuator.errors import NotFound
from actuator.interface import FieldProblem, ProviderConfig, resource_of
from actuator.meta import Object, Raw, value_at, wire_name
from actuator.provider_config import load_config
from generic.library.webhooks.garden import CloudProfile, NamespacedCloudProfile, Shoot
from generic.library.webhooks.places import configurations, place_of
from generic.library.webhooks.webhook import AdmissionRequest, Denied

C = TypeVar("C")
P = TypeVar("P", bound=ProviderConfig)
K = TypeVar("K", bound=Object)
READ_CLOUD_PROFILES = tuple(
    resource_of(cls.KIND).permission("get") for cls in (CloudProfile, NamespacedCloudProfile)
)


@attrs.frozen(kw_only=True)
class ConfigReview(Generic[C, K]):
    """A configuration that a rule judges, and the object of the garden that has it."""

    config: C
    """None for a kind without a configuration, such as a Secret."""
    former: C | None
    """The configuration before an update; None if there was none, or none that can be read, and for
    those of worker pools."""
    field: str
    """The path of the configuration."""
    provider: str
    """The type of the admission."""
    request: AdmissionRequest[K]
    """With its client, the rule reads objects for which the admission declares permissions."""

    @property
    def new(self) -> K:
        """The object as it will be, for example the Shoot."""
        return self.request.new

    @property
    def old(self) -> K | None:
        """The stored object; None if it is created."""
        return self.request.old

    def problem(self, field: str, detail: str) -> FieldProblem:
        """Return a problem of a field of the configuration, such as "zones[0].name"."""
        return FieldProblem(field=f"{self.field}.{field}".strip("."), detail=detail)

    def cloud_profile(self) -> CloudProfile:
        """Return the CloudProfile of the Shoot, for a NamespacedCloudProfile with its merged spec.

        Raises Denied if it does not exist, and ApiError.
        """
        shoot: Any = self.request.new
        given = shoot.spec.get("cloudProfile")
        name = str(value_at(given, "name") or shoot.spec.get("cloudProfileName") or "")
        is_own = value_at(given, "kind") == NamespacedCloudProfile.KIND.name
        cls: type[Any] = NamespacedCloudProfile if is_own else CloudProfile
        namespace = self.request.namespace if is_own else ""
        try:
            found = self.request.client.get(resource_of(cls.KIND), name, namespace)
        except NotFound:
            where = f"{cls.KIND.name} {name!r} does not exist"
            raise Denied(f"spec.cloudProfile: {where}; set the name of another one") from None
        profile = decode(cls, found)
        spec = profile.status.get("cloudProfileSpec", {}) if is_own else profile.spec
        return CloudProfile(metadata=profile.metadata, spec=spec)

    def configs(self, kind: type[Object], cls: type[P], provider: str = "") -> list[P]:
        """Return the configurations of another kind, without those that cannot be read.

        They are those of the same object, or for CloudProfile that of `cloud_profile`; by default
        of the same type.
        """
        place = place_of(kind)
        is_profile = place.of is CloudProfile and isinstance(self.request.new, Shoot)
        holder = self.cloud_profile() if is_profile else self.request.new
        loaded = (
            load_config(cls, given, path, rules=False)[0]
            for path, found, given in configurations(place, fields_of(holder))
            if found == (provider or self.provider)
        )
        return [config for config in loaded if config is not None]


Rule = Callable[[ConfigReview[Any, Any]], Iterable[FieldProblem]]
"""Returns the problems of a configuration. Raises Denied, too."""


def fields_of(obj: Object) -> Raw:
    """Return the fields of an object by their JSON names; their values are not copied."""
    return {wire_name(field): getattr(obj, field.name) for field in attrs.fields(type(obj))}

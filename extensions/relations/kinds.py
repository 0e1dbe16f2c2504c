"""The sample's three kinds, data only. `type` selects the extension, as in Gardener's kinds."""

from typing import Annotated, ClassVar

import attrs

from actuator import Column, ConditionedStatus, DefaultSpec, Kind, Object, Schema, own_kind

GROUP = "relations.example.org"


@attrs.frozen(kw_only=True)
class TeamSpec(DefaultSpec):
    """`settings` are written to the Team's ConfigMap in `namespace`; other Teams share `shared`."""

    namespace: Annotated[str, Schema(required=True, min_length=1, immutable=True)] = ""
    settings: dict[str, str] = attrs.field(factory=dict)
    shared: Annotated[str, Schema(description="A ConfigMap of several Teams.", immutable=True)] = ""


@attrs.define(kw_only=True)
class Team(Object):
    """Owns ConfigMaps in a namespace; is cluster-scoped itself."""

    KIND: ClassVar[Kind] = own_kind(
        "Team", GROUP, Column("Namespace", ".spec.namespace"), namespaced=False
    )

    spec: Annotated[TeamSpec, Schema(required=True)] = attrs.field(factory=TeamSpec)
    status: ConditionedStatus = attrs.field(factory=ConditionedStatus)


@attrs.frozen(kw_only=True)
class MirrorSpec(DefaultSpec):
    """`to` is the namespace of the copy."""

    to: Annotated[str, Schema(required=True, min_length=1, immutable=True)] = ""


@attrs.define(kw_only=True)
class Mirror(Object):
    """Copies the ConfigMap with its name, which others own, to another namespace."""

    KIND: ClassVar[Kind] = own_kind("Mirror", GROUP, Column("To", ".spec.to"))

    spec: Annotated[MirrorSpec, Schema(required=True)] = attrs.field(factory=MirrorSpec)
    status: ConditionedStatus = attrs.field(factory=ConditionedStatus)


@attrs.frozen(kw_only=True)
class EntrySpec(DefaultSpec):
    """The text of the entry in the register."""

    text: Annotated[str, Schema(required=True, min_length=1)] = ""


@attrs.define(kw_only=True)
class EntryStatus(ConditionedStatus):
    """`id` is absent until the first request to the register, and "" while it is unknown."""

    id: str | None = None


@attrs.define(kw_only=True)
class Entry(Object):
    """An entry in a register outside."""

    KIND: ClassVar[Kind] = own_kind("Entry", GROUP, Column("Id", ".status.id"))

    spec: Annotated[EntrySpec, Schema(required=True)] = attrs.field(factory=EntrySpec)
    status: EntryStatus = attrs.field(factory=EntryStatus)

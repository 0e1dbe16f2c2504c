"""providerConfig: what a user may write for the local extensions, decoded strictly.

Kinds that take no configuration refuse one. All faults are FieldProblems, so an object's status
names every one of them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol, TypeVar

import attrs

from actuator import DefaultSpec, FieldProblem
from actuator.codec import decode_strictly
from actuator.errors import DecodeError

__all__ = ["API_VERSION", "NetworkConfig", "ShareConfig", "check", "check_none", "read"]

API_VERSION = "local.provider.extensions.gardener.cloud/v1alpha1"
_FIELD = "spec.providerConfig"
_CAPACITY = re.compile(r"[1-9][0-9]{0,5}[MGT]i")
_SMALLEST_MTU, _LARGEST_MTU = 1280, 9000
"""1280 is the least that IPv6 allows (RFC 8200, section 5)."""


@attrs.frozen(kw_only=True)
class NetworkConfig:
    """providerConfig of a Network; all of it is optional. `mtu` is in bytes."""

    api_version: str = API_VERSION
    kind: str = "NetworkConfig"
    mtu: int = 1450

    def problems(self) -> Iterator[FieldProblem]:
        """What the types alone cannot say."""
        if not _SMALLEST_MTU <= self.mtu <= _LARGEST_MTU:
            yield FieldProblem(
                field=f"{_FIELD}.mtu",
                detail=f"{self.mtu} bytes; set {_SMALLEST_MTU} to {_LARGEST_MTU}",
            )


@attrs.frozen(kw_only=True)
class ShareConfig:
    """providerConfig of an Extension.

    `capacity` is like "10Gi". `credentials` names a Secret in the shoot's spec.resources.
    """

    api_version: str = API_VERSION
    kind: str = "ShareConfig"
    capacity: str = "1Gi"
    credentials: str = ""

    def problems(self) -> Iterator[FieldProblem]:
        """What the types alone cannot say."""
        if not _CAPACITY.fullmatch(self.capacity):
            yield FieldProblem(
                field=f"{_FIELD}.capacity",
                detail=f'{self.capacity!r} is no size; write one like "10Gi" (Mi, Gi or Ti)',
            )


class _Config(Protocol):
    @property
    def api_version(self) -> str: ...

    @property
    def kind(self) -> str: ...

    def problems(self) -> Iterator[FieldProblem]: ...


C = TypeVar("C", bound=_Config)


def read(cls: type[C], spec: DefaultSpec) -> C:
    """The configuration; what is not written has its default. Raises DecodeError."""
    return decode_strictly(cls, spec.provider_config or {})


def check(cls: type[_Config], spec: DefaultSpec) -> Iterator[FieldProblem]:
    """Everything that is wrong with the configuration."""
    try:
        config = read(cls, spec)
    except DecodeError as error:
        yield FieldProblem(field=_FIELD, detail=f"{error}; correct or remove these fields")
        return
    if (config.api_version, config.kind) != (API_VERSION, cls.__name__):
        yield FieldProblem(
            field=_FIELD,
            detail=f"{config.api_version} {config.kind} is not understood; "
            f"set apiVersion {API_VERSION} and kind {cls.__name__}",
        )
    yield from config.problems()


def check_none(spec: DefaultSpec) -> Iterator[FieldProblem]:
    """For kinds that have nothing to configure."""
    if spec.provider_config:
        yield FieldProblem(field=_FIELD, detail="there is nothing to configure; remove it")

"""providerConfig: what a user wrote for an extension, decoded strictly; faults are FieldProblems.

A configuration is an attrs class with defaults for everything, among them the apiVersion and kind
that a user has to write. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from actuator.codec import decode_strictly
from actuator.errors import DecodeError
from actuator.interface import FieldProblem
from actuator.meta import DefaultSpec

__all__ = ["FIELD", "ProviderConfig", "config_problems", "read_config"]

FIELD = "spec.providerConfig"


class ProviderConfig(Protocol):
    """What a configuration has to have."""

    @property
    def api_version(self) -> str:
        """Group and version; the default is the one that is understood."""

    @property
    def kind(self) -> str:
        """The default is the one that is understood."""

    def problems(self) -> Iterable[FieldProblem]:
        """What the types alone cannot say."""


C = TypeVar("C", bound=ProviderConfig)


def read_config(cls: type[C], spec: DefaultSpec) -> C:
    """The configuration; what is not written has its default. Raises DecodeError."""
    return decode_strictly(cls, spec.provider_config or {})


def config_problems(cls: type[ProviderConfig], spec: DefaultSpec) -> Iterator[FieldProblem]:
    """Everything that is wrong with the configuration, for `Actuator.validate`."""
    try:
        config = read_config(cls, spec)
    except DecodeError as error:
        yield FieldProblem(field=FIELD, detail=f"{error}; correct or remove these fields")
        return
    understood = cls()
    if (config.api_version, config.kind) != (understood.api_version, understood.kind):
        yield FieldProblem(
            field=FIELD,
            detail=f"{config.api_version} {config.kind} is not understood; "
            f"set apiVersion {understood.api_version} and kind {understood.kind}",
        )
    yield from config.problems()

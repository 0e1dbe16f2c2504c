"""providerConfig: an extension's configuration, decoded strictly; problems are FieldProblems.

A configuration is an attrs class with a default for every field, including the apiVersion and kind
that a user has to write. Pure.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from actuator.codec import decode_strictly
from actuator.errors import DecodeError
from actuator.interface import FieldProblem
from actuator.meta import DefaultSpec

FIELD = "spec.providerConfig"


class ProviderConfig(Protocol):
    """The attributes that a configuration class must have."""

    @property
    def api_version(self) -> str:
        """Group and version; the default is the supported one."""

    @property
    def kind(self) -> str:
        """The kind; the default is the supported one."""

    def problems(self) -> Iterable[FieldProblem]:
        """Return the problems that the types cannot express."""


C = TypeVar("C", bound=ProviderConfig)


def read_config(cls: type[C], spec: DefaultSpec) -> C:
    """Return the configuration; omitted fields have their defaults. Raises DecodeError."""
    return decode_strictly(cls, spec.provider_config or {})


def refuse_config(spec: DefaultSpec) -> Iterator[FieldProblem]:
    """Yield a problem if there is a providerConfig, for a kind that has nothing to configure."""
    if spec.provider_config is not None:
        yield FieldProblem(field=FIELD, detail="there is nothing to configure; remove it")


def config_problems(cls: type[ProviderConfig], spec: DefaultSpec) -> Iterator[FieldProblem]:
    """Yield every problem of the configuration, for `Actuator.validate`."""
    try:
        config = read_config(cls, spec)
    except DecodeError as error:
        yield FieldProblem(field=FIELD, detail=f"{error}; correct or remove these fields")
        return
    understood = cls()
    if (config.api_version, config.kind) != (understood.api_version, understood.kind):
        yield FieldProblem(
            field=FIELD,
            detail=f"{config.api_version} {config.kind} is not supported; "
            f"set apiVersion {understood.api_version} and kind {understood.kind}",
        )
    yield from config.problems()

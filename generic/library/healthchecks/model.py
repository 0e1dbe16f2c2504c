"""What an author of health checks writes, and what a check gets and returns.

Source of the words: Gardener documentation, "Health Check Library". What many results mean for one
condition is `aggregate`'s business.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import attrs

from actuator.cluster import Cluster
from actuator.errors import ErrorCode
from actuator.interface import Client, Permission
from actuator.meta import Object

SHOOT_ACCESS = Permission(api_version="v1", resource="secrets", verbs=["get"])
"""What a check needs that looks into the shoot: its kubeconfig is in a Secret of the seed."""


def _each_once(codes: Iterable[ErrorCode]) -> tuple[ErrorCode, ...]:
    return tuple(dict.fromkeys(codes))


class HealthStatus(StrEnum):
    """What a check can find; that it could not look at all is an exception instead."""

    TRUE = "True"
    FALSE = "False"
    PROGRESSING = "Progressing"


@attrs.frozen(kw_only=True)
class HealthResult:
    """What one check found: `detail` for people, never a secret, and Gardener's error codes.

    `progressing_threshold` is for how many seconds Progressing is fine; None: not at all.
    """

    status: HealthStatus
    detail: str = ""
    codes: Sequence[ErrorCode] = attrs.field(default=(), converter=_each_once)
    progressing_threshold: float | None = None

    @classmethod
    def healthy(cls) -> HealthResult:
        """All is well."""
        return cls(status=HealthStatus.TRUE)

    @classmethod
    def unhealthy(cls, detail: str, codes: Sequence[ErrorCode] = ()) -> HealthResult:
        """Something is wrong."""
        return cls(status=HealthStatus.FALSE, detail=detail, codes=codes)

    @classmethod
    def progressing(
        cls, detail: str, threshold: float | None, codes: Sequence[ErrorCode] = ()
    ) -> HealthResult:
        """Something is not there yet, which is fine for `threshold` seconds."""
        return cls(
            status=HealthStatus.PROGRESSING,
            detail=detail,
            codes=codes,
            progressing_threshold=threshold,
        )


class HealthContext:
    """What a check may look at. Checks of one object share it, each in a thread of its own."""

    def __init__(
        self, obj: Any, cluster: Cluster, seed: Client, connect_shoot: Callable[[], Client]
    ) -> None:
        self.obj = obj
        """The object, decoded: an Object of the class that was registered. Not to be changed."""
        self.cluster = cluster
        """Its Cluster; an empty one where the object is in no shoot."""
        self.seed = seed
        self._connect_shoot = connect_shoot
        self._shoot: Client | None = None
        self._lock = threading.Lock()

    @property
    def namespace(self) -> str:
        """The object's namespace in the seed."""
        namespace: str = self.obj.metadata.namespace
        return namespace

    @property
    def shoot(self) -> Client:
        """A client for the shoot's API server. Raises ShootUnreachable, ApiError."""
        with self._lock:
            if self._shoot is None:
                self._shoot = self._connect_shoot()
            return self._shoot


HealthCheck = Callable[[HealthContext], HealthResult]
"""Looks, and changes nothing. Whatever it raises means that nobody can say: Unknown."""


def _one_or_more(types: str | Iterable[str]) -> tuple[str, ...]:
    return (types,) if isinstance(types, str) else tuple(types)


def _permissions_of(check: Check) -> tuple[Permission, ...]:
    return tuple(getattr(check.check, "permissions", ()))


@attrs.frozen
class Check:
    """One check, and the condition that it contributes to; several may share a condition.

    gardenlet merges ControlPlaneHealthy, EveryNodeReady, SystemComponentsHealthy and
    ObservabilityComponentsHealthy into the shoot's own conditions. Where `pre_check` says False
    there is nothing to check, and all is well. `classify` gives the codes that a detail means.
    """

    condition_type: str = attrs.field(validator=attrs.validators.min_len(1))
    check: HealthCheck
    pre_check: Callable[[HealthContext], bool] | None = None
    classify: Callable[[str], Iterable[ErrorCode]] = attrs.field(
        default=lambda _detail: (), kw_only=True
    )
    permissions: Sequence[Permission] = attrs.field(
        default=attrs.Factory(_permissions_of, takes_self=True), kw_only=True
    )
    """What the check reads in the seed, and SHOOT_ACCESS; built-in checks say so themselves."""

    def run(self, ctx: HealthContext) -> HealthResult:
        """What the check finds. Raises whatever the check raises."""
        if self.pre_check is not None and not self.pre_check(ctx):
            return HealthResult.healthy()
        result = self.check(ctx)
        if not isinstance(result, HealthResult):
            raise TypeError(f"a health check returns a HealthResult, not {type(result).__name__}")
        if result.status is HealthStatus.TRUE:
            return result
        return attrs.evolve(result, codes=[*result.codes, *self.classify(result.detail)])


@attrs.frozen(kw_only=True)
class HealthChecks:
    """What to check for the objects of class `cls` and these types, every `sync_period` seconds.

    `stale_conditions` are types of conditions that a former version wrote; they are removed.
    Raises ValueError for a type that is both, no check at all, or a period not above 0.
    """

    cls: type[Object]
    types: tuple[str, ...] = attrs.field(converter=_one_or_more)
    checks: tuple[Check, ...] = attrs.field(converter=tuple, validator=attrs.validators.min_len(1))
    sync_period: float = attrs.field(default=30.0, validator=attrs.validators.gt(0))
    stale_conditions: frozenset[str] = attrs.field(default=frozenset(), converter=frozenset)

    def __attrs_post_init__(self) -> None:
        """Raises ValueError where a condition is to be written and to be removed."""
        both = self.stale_conditions & set(self.condition_types)
        if both:
            raise ValueError(f"condition {min(both)!r} is checked, and so cannot be stale")

    @property
    def condition_types(self) -> list[str]:
        """The types of the conditions, each once."""
        return list(dict.fromkeys(check.condition_type for check in self.checks))

    @property
    def permissions(self) -> Iterator[Permission]:
        """What all of this reads in the seed, besides the kind and its Clusters."""
        for check in self.checks:
            yield from check.permissions

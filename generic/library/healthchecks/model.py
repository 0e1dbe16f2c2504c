"""The interface of health checks: declarations of an author, input and result of a check.

Source of the terms: Gardener documentation, "Health Check Library". Not here: the aggregation of
results into a condition (`aggregate`).
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import attrs

from actuator.cluster import Cluster
from actuator.errors import ErrorCode
from actuator.interface import Client, Permission
from actuator.meta import Object


def _each_once(codes: Iterable[ErrorCode]) -> tuple[ErrorCode, ...]:
    return tuple(dict.fromkeys(codes))


class HealthStatus(StrEnum):
    """The status of a result; a check that cannot be done raises an exception instead."""

    TRUE = "True"
    FALSE = "False"
    PROGRESSING = "Progressing"


@attrs.frozen(kw_only=True)
class HealthResult:
    """The result of one check: `detail` for people, never a secret, and Gardener's error codes.

    `progressing_threshold` is how many seconds Progressing is accepted; None: not at all.
    """

    status: HealthStatus
    detail: str = ""
    codes: Sequence[ErrorCode] = attrs.field(default=(), converter=_each_once)
    progressing_threshold: float | None = None

    @classmethod
    def healthy(cls) -> "HealthResult":
        """Return a healthy result."""
        return cls(status=HealthStatus.TRUE)

    @classmethod
    def unhealthy(cls, detail: str, codes: Sequence[ErrorCode] = ()) -> "HealthResult":
        """Return an unhealthy result."""
        return cls(status=HealthStatus.FALSE, detail=detail, codes=codes)

    @classmethod
    def progressing(
        cls, detail: str, threshold: float | None, codes: Sequence[ErrorCode] = ()
    ) -> "HealthResult":
        """Return a result that is unfinished, which is accepted for `threshold` seconds."""
        return cls(
            status=HealthStatus.PROGRESSING,
            detail=detail,
            codes=codes,
            progressing_threshold=threshold,
        )


class HealthContext:
    """The input of a check. The checks of one object share it, each in its own thread."""

    def __init__(
        self, obj: Any, cluster: Cluster, seed: Client, connect_shoot: Callable[[], Client]
    ) -> None:
        self.obj = obj
        """The decoded object, of the registered class. Read-only."""
        self.cluster = cluster
        """Its Cluster; an empty one if the object belongs to no shoot."""
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
        """Return a client for the shoot's API server. Raises ShootUnreachable, ApiError."""
        with self._lock:
            if self._shoot is None:
                self._shoot = self._connect_shoot()
            return self._shoot


HealthCheck = Callable[[HealthContext], HealthResult]
"""Check without changing anything. Any exception results in Unknown."""


def _one_or_more(types: str | Iterable[str]) -> tuple[str, ...]:
    return (types,) if isinstance(types, str) else tuple(types)


def _names(types: str | Iterable[str]) -> frozenset[str]:
    return frozenset(_one_or_more(types))


@attrs.frozen
class Check:
    """One check, and the type of its condition; several checks may share a condition.

    gardenlet merges ControlPlaneHealthy, EveryNodeReady, SystemComponentsHealthy and
    ObservabilityComponentsHealthy into the shoot's own conditions. If `pre_check` returns False,
    the check is skipped and healthy. `classify` maps a detail to error codes. With `threshold`, an
    unhealthy result counts as Progressing for that many seconds, for example during a rollout.
    """

    condition_type: str = attrs.field(validator=attrs.validators.min_len(1))
    check: HealthCheck
    pre_check: Callable[[HealthContext], bool] | None = None
    classify: Callable[[str], Iterable[ErrorCode]] = attrs.field(
        default=lambda _detail: (), kw_only=True
    )
    threshold: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.gt(0)), kw_only=True
    )
    permissions: Sequence[Permission] = attrs.field(
        default=attrs.Factory(lambda item: getattr(item.check, "permissions", ()), takes_self=True),
        kw_only=True,
    )
    """Permissions in the seed, with SHOOT_ACCESS if needed; built-in checks define them."""

    def run(self, ctx: HealthContext) -> HealthResult:
        """Run the check. Raises any exception of the check."""
        if self.pre_check is not None and not self.pre_check(ctx):
            return HealthResult.healthy()
        result = self.check(ctx)
        if not isinstance(result, HealthResult):
            raise TypeError(
                f"expected a HealthResult from the health check, got {type(result).__name__}"
            )
        if result.status is HealthStatus.TRUE:
            return result
        result = attrs.evolve(result, codes=[*result.codes, *self.classify(result.detail)])
        if self.threshold is None or result.status is HealthStatus.PROGRESSING:
            return result
        return HealthResult.progressing(result.detail, self.threshold, result.codes)


def _checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    return tuple(checks)


@attrs.frozen(kw_only=True)
class HealthChecks:
    """The checks for objects of class `cls` and these types, every `sync_period` seconds.

    `stale_conditions` are condition types of a former version; they are removed.
    Raises ValueError for a type that is in both, no check at all, or a period not above 0.
    """

    cls: type[Object]
    types: tuple[str, ...] = attrs.field(converter=_one_or_more)
    checks: tuple[Check, ...] = attrs.field(
        converter=_checks, validator=attrs.validators.min_len(1)
    )
    sync_period: float = attrs.field(default=30.0, validator=attrs.validators.gt(0))
    stale_conditions: frozenset[str] = attrs.field(default=frozenset(), converter=_names)

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if a condition is both checked and stale."""
        both = self.stale_conditions & set(self.condition_types)
        if both:
            raise ValueError(f"condition {min(both)!r} has a check and cannot be declared stale")

    @property
    def condition_types(self) -> list[str]:
        """The types of the conditions, without duplicates."""
        return list(dict.fromkeys(check.condition_type for check in self.checks))

    @property
    def permissions(self) -> Iterator[Permission]:
        """The permissions in the seed, besides the kind and its Clusters."""
        for check in self.checks:
            yield from check.permissions

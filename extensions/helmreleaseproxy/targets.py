"""Targets: whether they exist, their kubeconfigs, and their guards.

A Target has one of three states. It exists; it is deleted (404: Cluster API's hook, the guard, was
removed); or it is unknown: every other error, an unreachable API server, a missing kubeconfig. An
unknown Target is never treated as deleted.
"""

import binascii
from collections.abc import Iterable

import attrs

from actuator import ActuatorError, ConfigurationError, Context, ErrorCode, RequeueAfter
from actuator.errors import NotFound
from actuator.meta import Base64, Raw
from extensions.helmreleaseproxy.kinds import GROUP, TARGETS
from generic.kube.finalizers import Stale, patch_tested, put_on, take_off
from generic.kube.inline_kubeconfig import InlineKubeconfig, read_kubeconfig
from generic.library.lookup import find

_KEY = "value"
_AGAIN = 1.0


@attrs.frozen
class TargetId:
    """The identity of a Target."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TargetUnknown(ActuatorError):
    """A Target exists, but its contents are unknown; `reason` is one CamelCase word."""

    def __init__(
        self, target: TargetId, why: str, reason: str, codes: Iterable[ErrorCode] = ()
    ) -> None:
        super().__init__(
            f"Target {target} is there, but helm cannot work in it: {why}",
            codes=codes,
            reason=reason,
        )


def uid_of(ctx: Context, target: TargetId) -> str | None:
    """Return the Target's uid, or None if it is deleted. Raises ApiError if it is unknown."""
    found = find(ctx.client, TARGETS, target.name, target.namespace)
    return None if found is None else str(found["metadata"]["uid"])


def kubeconfig(ctx: Context, target: TargetId) -> InlineKubeconfig:
    """Return the kubeconfig of an existing Target, stored in the way of Cluster API.

    If the Secret is gone, a deletion gets the content that was read last. Raises TargetUnknown,
    never with the content in it, and ApiError.
    """
    name = f"{target.name}-kubeconfig"
    try:
        secret = ctx.secret(name, target.namespace)
        content = Base64(secret["data"][_KEY]).decode_bytes()
    except NotFound:
        raise _unusable(target, f"there is no Secret {name}") from None
    except (KeyError, TypeError, binascii.Error):
        raise _unusable(target, f"Secret {name} has no kubeconfig as its {_KEY!r}") from None
    try:
        return read_kubeconfig(content)
    except ConfigurationError as error:
        raise _unusable(target, f"Secret {name}: {error}") from None


def guard_of(chart_proxy: str) -> str:
    """Return the finalizer with which a HelmChartProxy keeps its Targets."""
    return f"{GROUP}/chart-{chart_proxy}"


def put_guard(ctx: Context, target: Raw, guard: str) -> None:
    """Add the guard; return once it is acknowledged. Raises RequeueAfter on a conflict."""
    meta = target["metadata"]
    finalizers = meta.get("finalizers") or []
    if guard not in finalizers:
        _patch(ctx, target, put_on(guard, meta["uid"], finalizers))


def let_go(ctx: Context, target: Raw, guard: str) -> None:
    """Remove the guard; a deleted Target is success. Raises RequeueAfter on a conflict."""
    meta = target["metadata"]
    finalizers = meta.get("finalizers") or []
    if guard in finalizers:
        _patch(ctx, target, take_off([guard], meta["uid"], finalizers))


def _patch(ctx: Context, target: Raw, patch: list[Raw]) -> None:
    meta = target["metadata"]
    try:
        patch_tested(ctx.client, TARGETS, meta["name"], meta["namespace"], patch)
    except NotFound:
        ctx.log.info("target is gone", extra={"fields": {"target": meta["name"]}})
    except Stale as stale:
        raise RequeueAfter(_AGAIN, str(stale)) from None


def _unusable(target: TargetId, why: str) -> TargetUnknown:
    return TargetUnknown(target, why, "NoKubeconfig", [ErrorCode.ERR_CONFIGURATION_PROBLEM])

"""Targets: whether they exist, their kubeconfigs, and the guards of releases.

A Target has one of three states. It exists; it is deleted (404: all guards were removed); or it is
unknown: every other error, an unreachable API server, a missing kubeconfig. An unknown Target is
never treated as deleted.

The sample's own Targets and the Clusters of Cluster API have their kubeconfig in the Secret
`<name>-kubeconfig` of their namespace, under the key `value` (Cluster API documentation, "Cluster
Controller", Kubeconfig Secrets). Of a Cluster, `spec.controlPlaneEndpoint` is set once it has an
API server.
"""

import binascii
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

import attrs

from actuator import (
    ActuatorError,
    Base64,
    ConfigurationError,
    Conflict,
    Context,
    ErrorCode,
    NotFound,
    Raw,
    RequeueAfter,
    Resource,
)
from extensions.helmreleaseproxy.kinds import GROUP, TARGETS, ChartSpec, TargetKind
from generic import add_finalizer, remove_finalizers
from generic.library import InlineKubeconfig, find, read_kubeconfig

_KEY = "value"
_AGAIN = 1.0


Places = Mapping[TargetKind, Resource]
"""The resources whose objects name clusters."""

TARGETS_ONLY: Places = MappingProxyType({TargetKind.TARGET: TARGETS})


def with_cluster_api(version: str) -> Places:
    """Return the places with Cluster API's Clusters in that version, v1beta1 or v1beta2."""
    clusters = Resource(f"cluster.x-k8s.io/{version}", "clusters")
    return {**TARGETS_ONLY, TargetKind.CLUSTER: clusters}


def place_of(places: Places, spec: ChartSpec) -> Resource:
    """Return the resource of a spec's Targets. Raises ConfigurationError if it is not served."""
    try:
        return places[spec.target_kind]
    except KeyError:
        raise ConfigurationError(
            f"spec.targetKind: this manager does not serve {spec.target_kind.value} objects; its "
            "operator has to set CLUSTER_API_VERSION, or create the object with another targetKind"
        ) from None


@attrs.frozen
class TargetId:
    """The identity of a Target."""

    namespace: str
    name: str
    kind: TargetKind = TargetKind.TARGET
    resource: Resource = TARGETS

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def text(self) -> str:
        """Its kind and name, for messages."""
        return f"{self.kind.value} {self}"


class TargetUnknown(ActuatorError):
    """A Target exists, but its contents are unknown; `reason` is one CamelCase word."""

    def __init__(
        self, target: TargetId, why: str, reason: str, codes: Iterable[ErrorCode] = ()
    ) -> None:
        super().__init__(
            f"{target.text} is there, but helm cannot work in it: {why}", codes=codes, reason=reason
        )


def look_up(ctx: Context, target: TargetId) -> Raw | None:
    """Return the Target, or None if it is deleted. Raises ApiError if it is unknown."""
    return find(ctx.client, target.resource, target.name, target.namespace)


def require(ctx: Context, target: TargetId, seconds: float) -> Raw:
    """Return a Target in which helm can work. Raises RequeueAfter(`seconds`), and ApiError."""
    found = look_up(ctx, target)
    if found is None:
        text = f"{target.text}: there is none; create it, or correct spec.target and targetKind"
        codes = [ErrorCode.ERR_CONFIGURATION_PROBLEM]
        raise RequeueAfter(seconds, cause=ActuatorError(text, codes=codes, reason="TargetNotFound"))
    endpoint = (found.get("spec") or {}).get("controlPlaneEndpoint") or {}
    if target.kind is TargetKind.CLUSTER and not endpoint.get("host"):
        raise RequeueAfter(seconds, f"Waiting for {target.text}: no spec.controlPlaneEndpoint yet")
    return found


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


def guard_of(release_uid: str) -> str:
    """Return the finalizer with which a HelmReleaseProxy keeps its Target."""
    return f"{GROUP}/release-{release_uid}"


def set_guard(ctx: Context, target: TargetId, found: Raw, guard: str, *, wanted: bool) -> None:
    """Add or remove a guard; return once it is acknowledged. A deleted Target has none.

    Raises RequeueAfter if the Target is deleted before the guard is added, or changes repeatedly.
    """
    try:
        if not wanted:
            with suppress(NotFound):
                remove_finalizers(ctx.client, target.resource, found, [guard])
            return
        if add_finalizer(ctx.client, target.resource, found, guard):
            return
    except (Conflict, NotFound):  # the releases of a Target change its list at the same time
        ctx.log.debug("the target changes or is deleted")
    raise RequeueAfter(_AGAIN, f"Waiting for {target.text}: it is being changed or deleted")


def _unusable(target: TargetId, why: str) -> TargetUnknown:
    return TargetUnknown(target, why, "NoKubeconfig", [ErrorCode.ERR_CONFIGURATION_PROBLEM])

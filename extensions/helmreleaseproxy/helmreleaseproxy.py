"""HelmReleases: the actuator of HelmReleaseProxies, one release in one Target each.

The steps: save the Target's uid, which means that a release may exist; install with helm; upgrade
for each later change of the spec; uninstall. If the Target is deleted, there is nothing to clean
up. If the Target exists and is unreachable, the object remains until the Target can be reached, or
until the deletion is forced: then no request is sent to the Target, and the release is recorded as
orphaned.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from actuator import (
    Actuator,
    Cluster,
    Condition,
    Context,
    ExternalResource,
    FieldProblem,
    RequeueAfter,
    Resource,
)
from actuator.conditions import set_condition
from extensions.helmreleaseproxy import kinds
from extensions.helmreleaseproxy.charts import Charts
from extensions.helmreleaseproxy.helm import Helm
from extensions.helmreleaseproxy.order import (
    CONTROLLERS,
    NEIGHBOURS,
    follow_controller,
    wait_for_dependants,
    wait_for_dependencies,
)
from extensions.helmreleaseproxy.releases import Release, Releases
from extensions.helmreleaseproxy.targets import TargetId, TargetUnknown, kubeconfig, uid_of

RELEASE = "Helm::Release"
"""The type of a release in records of orphaned resources."""

TARGET_REACHABLE = "TargetReachable"
"""Type of the condition with the result of the last request to the Target."""

_LOOK_AGAIN = 5.0


class HelmReleases(Actuator[kinds.HelmReleaseProxy]):
    """Installs charts with `helm`."""

    permissions = (
        kinds.TARGETS.permission("get"),
        kinds.CHARTS.permission("get"),
        Resource("v1", "secrets").permission("get"),
    )
    watches = (NEIGHBOURS, CONTROLLERS)

    def __init__(self, helm: Helm, charts: Charts) -> None:
        self._helm = helm
        self._charts = charts

    def validate(
        self, ctx: Context, obj: kinds.HelmReleaseProxy, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Return the problems of the spec."""
        return self._charts.problems(obj.spec, obj.metadata.name)

    def reconcile(self, ctx: Context, obj: kinds.HelmReleaseProxy, cluster: Cluster) -> None:
        """Install or upgrade the release in the Target as `spec` requests."""
        target, status = _target(obj), obj.status
        uid = uid_of(ctx, target)
        if uid is None:
            raise RequeueAfter(_LOOK_AGAIN, f"Waiting for Target {target}: there is none")
        wait_for_dependencies(ctx, obj)
        if status.target_uid != uid:  # never installed, or in another Target of that name
            status.target_uid, status.applied_generation = uid, 0
            ctx.save(obj)
        wanted, generation = self._release(obj), obj.metadata.generation
        with self._releases(ctx, obj) as releases:
            there = releases.find(wanted)
            known = ("deployed", status.revision, status.applied_generation)
            if there is None or (there.status, there.revision, generation) != known:
                status.revision = releases.install(wanted, there)
                status.applied_generation = generation

    def delete(self, ctx: Context, obj: kinds.HelmReleaseProxy, cluster: Cluster) -> None:
        """Uninstall the release, unless its Target is deleted."""
        if not obj.status.target_uid:
            return  # helm never ran
        follow_controller(ctx, obj)
        target = _target(obj)
        if uid_of(ctx, target) != obj.status.target_uid:
            ctx.event("TargetGone", f"Target {target} is gone: nothing to clean")
            ctx.log.info("target is gone, nothing to clean")
            return
        wait_for_dependants(ctx, obj)
        with self._releases(ctx, obj) as releases:
            ours = self._release(obj)
            if releases.find(ours) is not None:
                releases.uninstall(ours)

    def force_delete(self, ctx: Context, obj: kinds.HelmReleaseProxy, cluster: Cluster) -> None:
        """Send no request to a Target: the release remains, unless its Target is deleted."""
        if obj.status.target_uid and uid_of(ctx, _target(obj)) != obj.status.target_uid:
            obj.status.target_uid = ""
            ctx.save(obj)

    def external_resources(self, obj: kinds.HelmReleaseProxy) -> Iterable[ExternalResource]:
        """Return the release, if helm may have run."""
        if obj.status.target_uid:
            where = f"{obj.spec.namespace}/{obj.spec.release_name}"
            yield left_behind(where, _target(obj), obj.metadata.uid)

    @contextmanager
    def _releases(self, ctx: Context, obj: kinds.HelmReleaseProxy) -> Iterator[Releases]:
        """Return the Target's releases; a condition reports the Target's response."""
        target = _target(obj)
        try:
            yield Releases(self._helm, ctx, target, kubeconfig(ctx, target))
            _say(ctx, obj, "True", "Answers", f"Target {target} answers")
        except TargetUnknown as unknown:
            _say(ctx, obj, "Unknown", unknown.reason, unknown.message)
            raise

    def _release(self, obj: kinds.HelmReleaseProxy) -> Release:
        meta, spec = obj.metadata, obj.spec
        return Release(
            namespace=spec.namespace,
            name=spec.release_name,
            chart=self._charts.path(spec.chart),
            mark=(kinds.RELEASE_LABEL, meta.uid),
            marks={
                kinds.RELEASE_LABEL: meta.uid,
                kinds.TARGET_LABEL: spec.target,
                kinds.TARGET_NAMESPACE_LABEL: meta.namespace,
            },
            values=spec.values,
        )


def left_behind(release: str, target: TargetId, uid: str) -> ExternalResource:
    """Return the record of an orphaned release; `release` is NAMESPACE/NAME in the Target."""
    tags = {"target": str(target), "object": uid}
    return ExternalResource(type=RELEASE, id=f"{release}@{target}", tags=tags)


def _target(obj: kinds.HelmReleaseProxy) -> TargetId:
    return TargetId(obj.metadata.namespace, obj.spec.target)


def _say(ctx: Context, obj: kinds.HelmReleaseProxy, status: str, reason: str, message: str) -> None:
    said = Condition(type=TARGET_REACHABLE, status=status, reason=reason, message=message)
    obj.status.conditions = set_condition(obj.status.conditions, said, ctx.clock.now())

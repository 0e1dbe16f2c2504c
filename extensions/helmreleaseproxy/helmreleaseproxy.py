"""HelmReleases: the actuator of HelmReleaseProxies, one release in one Target each.

The steps: save the Target's uid, which means that a release may exist; add a guard, a finalizer,
to the Target; install with helm; upgrade for each later change of the spec; uninstall; remove the
guard. A Target that is deleted takes its releases with it, and exists until they are uninstalled:
without the guard no time would be left for that.

If the Target is gone, there is nothing to clean up. If the Target exists and is unreachable, the
object remains until the Target can be reached, or until the deletion is forced: then no request is
sent to the Target, and the release is recorded as orphaned.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from actuator import (
    Actuator,
    Cluster,
    Condition,
    Context,
    ExternalResource,
    FieldProblem,
    Resource,
    set_condition,
)
from extensions.helmreleaseproxy import kinds, order, targets
from extensions.helmreleaseproxy.charts import chart_problems
from extensions.helmreleaseproxy.helm import Helm
from extensions.helmreleaseproxy.releases import HelmRelease
from extensions.helmreleaseproxy.repositories import chart_of
from extensions.helmreleaseproxy.targets import TargetId, TargetUnknown
from generic import watches

RELEASE = "Helm::Release"
"""The type of a release in records of orphaned resources."""

TARGET_REACHABLE = "TargetReachable"
"""Type of the condition with the result of the last request to the Target."""

_LOOK_AGAIN = 5.0


class HelmReleases(Actuator[kinds.HelmReleaseProxy]):
    """Installs charts with `helm`."""

    def __init__(
        self, helm: Helm, charts: Path, places: targets.Places = targets.TARGETS_ONLY
    ) -> None:
        self._helm = helm
        self._charts = charts
        self._places = places
        self.permissions = (
            *(place.permission("get", "patch") for place in places.values()),
            kinds.CHARTS.permission("get"),
            kinds.RELEASES.permission("delete"),
            Resource("v1", "secrets").permission("get"),
        )
        of_targets = (
            watches(place, order.guarded, predicates=[order.IS_LEAVING])
            for place in places.values()
        )
        self.watches = (order.NEIGHBOURS, order.CONTROLLERS, *of_targets)

    def validate(
        self, ctx: Context, obj: kinds.HelmReleaseProxy, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Return the problems of the spec."""
        return chart_problems(self._charts, obj.spec, obj.metadata.name)

    def reconcile(self, ctx: Context, obj: kinds.HelmReleaseProxy, cluster: Cluster) -> None:
        """Install or upgrade the release in the Target as `spec` requests."""
        target = self._target(obj)
        status = obj.status
        found = targets.require(ctx, target, _LOOK_AGAIN)
        order.leave(ctx, obj, target, found)
        order.wait_for_dependencies(ctx, obj)
        uid = found["metadata"]["uid"]
        generation = obj.metadata.generation
        if status.target_uid != uid:  # never installed, or in another Target of that name
            status.target_uid = uid
            status.applied_generation = 0
            ctx.save(obj)
        targets.set_guard(ctx, target, found, targets.guard_of(obj.metadata.uid), wanted=True)
        with self._release(ctx, obj) as release:
            there = release.find()
            known = ("deployed", status.revision, status.applied_generation)
            if there is None or (there.status, there.revision, generation) != known:
                with chart_of(self._helm, self._charts, ctx, obj) as chart:
                    status.revision = release.install(chart, there)
                status.applied_generation = generation

    def delete(self, ctx: Context, obj: kinds.HelmReleaseProxy, cluster: Cluster) -> None:
        """Uninstall the release, unless its Target is deleted, and remove the guard."""
        status = obj.status
        if not status.target_uid and obj.spec.target_kind not in self._places:
            return  # helm never ran
        if status.target_uid:
            order.follow_controller(ctx, obj)
        target = self._target(obj)
        found = targets.look_up(ctx, target)
        if status.target_uid:
            if found is None or found["metadata"]["uid"] != status.target_uid:
                ctx.event("TargetGone", f"{target.text} is deleted: no cleanup")
                ctx.log.info("target is deleted, no cleanup")
                return
            order.follow_target(ctx, obj, target, found)
            order.wait_for_dependants(ctx, obj)
            self._uninstall(ctx, obj)
        if found is not None:
            targets.set_guard(ctx, target, found, targets.guard_of(obj.metadata.uid), wanted=False)

    def _uninstall(self, ctx: Context, obj: kinds.HelmReleaseProxy) -> None:
        """Uninstall the release, and save that there is none before the guard is removed."""
        with self._release(ctx, obj) as release:
            if release.find() is not None:
                release.uninstall()
        obj.status.target_uid = ""
        ctx.save(obj)

    def force_delete(self, ctx: Context, obj: kinds.HelmReleaseProxy, cluster: Cluster) -> None:
        """Send no request to a Target: the release remains, unless its Target is deleted."""
        if not obj.status.target_uid or obj.spec.target_kind not in self._places:
            return
        target = self._target(obj)
        found = targets.look_up(ctx, target)
        if found is None or found["metadata"]["uid"] != obj.status.target_uid:
            obj.status.target_uid = ""
            ctx.save(obj)
        else:
            targets.set_guard(ctx, target, found, targets.guard_of(obj.metadata.uid), wanted=False)

    def external_resources(self, obj: kinds.HelmReleaseProxy) -> Iterable[ExternalResource]:
        """Return the release, if helm may have run."""
        if obj.status.target_uid:
            where = f"{obj.spec.namespace}/{obj.spec.release_name}"
            target = TargetId(obj.metadata.namespace, obj.spec.target)
            yield left_behind(where, target, obj.metadata.uid)

    @contextmanager
    def _release(self, ctx: Context, obj: kinds.HelmReleaseProxy) -> Iterator[HelmRelease]:
        """Yield the object's release; a condition reports the Target's response."""
        target = self._target(obj)
        try:
            yield HelmRelease(self._helm, ctx, target, targets.kubeconfig(ctx, target), obj)
            _say(ctx, obj, "True", "Answers", f"{target.text} answers")
        except TargetUnknown as unknown:
            _say(ctx, obj, "Unknown", unknown.reason, unknown.message)
            raise

    def _target(self, obj: kinds.HelmReleaseProxy) -> TargetId:
        resource = targets.place_of(self._places, obj.spec)
        return TargetId(obj.metadata.namespace, obj.spec.target, obj.spec.target_kind, resource)


def left_behind(release: str, target: TargetId, uid: str) -> ExternalResource:
    """Return the record of an orphaned release; `release` is NAMESPACE/NAME in the Target."""
    tags = {"target": str(target), "object": uid}
    return ExternalResource(type=RELEASE, id=f"{release}@{target}", tags=tags)


def _say(ctx: Context, obj: kinds.HelmReleaseProxy, status: str, reason: str, message: str) -> None:
    said = Condition(type=TARGET_REACHABLE, status=status, reason=reason, message=message)
    obj.status.conditions = set_condition(obj.status.conditions, said, ctx.clock.now())

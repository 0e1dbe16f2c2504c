"""The check of a shoot's nodes: as many are ready as its machine deployments want.

While the shoot is scaled or rolled out, the result is Progressing, which is accepted for a time.
Sources: Gardener's health check library (`extensions/pkg/controller/healthcheck/worker`) for the
thresholds, gardenlet (`CheckNodesScaling`) for the cases and messages.
"""

from collections import Counter
from collections.abc import Sequence

import attrs

from actuator.interface import SHOOT_ACCESS, Resource
from actuator.meta import Raw, conditions_in, value_at
from generic.library.healthchecks.builtin import BuiltIn, machine_problems, shown
from generic.library.healthchecks.model import HealthCheck, HealthContext, HealthResult
from generic.library.machines import MACHINE_DEPLOYMENTS, MACHINES

_NODES = Resource("v1", "nodes")
_UNMANAGED = "node.machine.sapcloud.io/not-managed-by-mcm"
_ERRONEOUS = ("CrashLoopBackOff", "Failed", "InPlaceUpdateFailed")
_RUNNING = ("Available", "Running")


def nodes(*, scale_up_threshold: float = 300.0, scale_down_threshold: float = 900.0) -> HealthCheck:
    """Check that no machine failed, and as many nodes are ready as machines are desired.

    Nodes that are missing or not ready are accepted for `scale_up_threshold` seconds, nodes that
    are to be removed for `scale_down_threshold`. The defaults are Gardener's. Nodes that the
    machine-controller-manager does not manage are ignored.
    """

    def check(ctx: HealthContext) -> HealthResult:
        seen = Seen(
            deployments=ctx.seed.list(MACHINE_DEPLOYMENTS, ctx.namespace),
            machines=ctx.seed.list(MACHINES, ctx.namespace),
            nodes=[
                node
                for node in ctx.shoot.list(_NODES)
                if value_at(node, "metadata", "annotations", _UNMANAGED) != "1"
            ],
        )
        return seen.health(scale_up_threshold, scale_down_threshold)

    reads = (MACHINE_DEPLOYMENTS.permission("list"), MACHINES.permission("list"))
    return BuiltIn(check, (*reads, SHOOT_ACCESS))


@attrs.frozen(kw_only=True)
class Seen:
    """The objects of one check: of the seed, and the managed nodes of the shoot."""

    deployments: Sequence[Raw]
    machines: Sequence[Raw]
    nodes: Sequence[Raw]

    def health(self, up: float, down: float) -> HealthResult:
        """Return the result; `up` and `down` are thresholds in seconds."""
        leaving = [item for item in self.deployments if _is_deleting(item)]
        kept = [item for item in self.deployments if not _is_deleting(item)]
        desired = sum(value_at(item, "spec", "replicas") or 0 for item in kept)
        for deployment in (*leaving, *kept):
            if value_at(deployment, "status", "failedMachines"):
                return HealthResult.unhealthy(next(machine_problems(deployment)))
        preserved = sum(map(_is_preserved, self.nodes))
        ready = sum(_is_ready(node) and not _is_cordoned(node) for node in self.nodes)
        if ready + preserved < desired:
            return self._scaling_up(ready, desired, up)
        problem = next((found for item in kept for found in machine_problems(item)), None)
        if problem is not None:
            return HealthResult.unhealthy(problem)
        if len(self.nodes) > desired:
            return self._scaling_down(desired, down)
        return HealthResult.healthy()

    def _scaling_up(self, ready: int, desired: int, threshold: float) -> HealthResult:
        if len(self.machines) < desired:
            created = f"({len(self.machines)}/{desired})"
            text = f"not enough machine objects created yet {created}"
            return HealthResult.progressing(text, threshold)
        staying = [item for item in self.machines if not _is_deleting(item)]
        phases = Counter(_phase(machine) for machine in staying)
        if erroneous := sum(phases[phase] for phase in _ERRONEOUS):
            return HealthResult.unhealthy(f"{_counted(erroneous)} erroneous")
        pending = phases.total() - sum(phases[phase] for phase in _RUNNING)
        text = f"not enough ready worker nodes registered in the cluster ({ready}/{desired})"
        if pending:
            text = f"{_counted(pending)} provisioning and should join the cluster soon"
        return HealthResult.progressing(text, threshold)

    def _scaling_down(self, desired: int, threshold: float) -> HealthResult:
        machines = {value_at(item, "metadata", "labels", "node"): item for item in self.machines}
        draining = 0
        for node in filter(_is_cordoned, self.nodes):
            name = shown(value_at(node, "metadata", "name"))
            machine = machines.get(name)
            if machine is None:
                text = f'machine object for cordoned node "{name}" not found'
                return HealthResult.unhealthy(text)
            if _is_deleting(machine):
                draining += 1
            elif not _is_preserved(node):
                text = f'node "{name}" is cordoned, but its machine is not under deletion'
                return HealthResult.unhealthy(text)
        text = f"{_counted(draining)} waiting to be completely drained from pods"
        if len(self.nodes) - draining > desired:
            found = f"({len(self.nodes)}/{desired})"
            text = f"too many worker nodes are registered, more than machines are desired {found}"
        return HealthResult.progressing(text, threshold)


def _is_deleting(obj: Raw) -> bool:
    return value_at(obj, "metadata", "deletionTimestamp") is not None


def _is_cordoned(node: Raw) -> bool:
    return value_at(node, "spec", "unschedulable") is True


def _is_ready(node: Raw) -> bool:
    return _condition(node, "Ready") == "True"


def _is_preserved(node: Raw) -> bool:
    """Whether the failed machine of this node is kept, for its owner to look at."""
    return _condition(node, "NodePreserved") == "True" and not _is_ready(node)


def _condition(node: Raw, type: str) -> object:
    return value_at(conditions_in(value_at(node, "status")), type, "status")


def _phase(machine: Raw) -> object:
    if value_at(machine, "status", "currentStatus", "preserveExpiryTime") is not None:
        return _RUNNING[0]
    return value_at(machine, "status", "currentStatus", "phase")


def _counted(count: int) -> str:
    return "1 machine is" if count == 1 else f"{count} machines are"

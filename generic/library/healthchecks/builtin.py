"""Checks for most extensions: an object exists, and its status is healthy.

Healthy is defined as in Gardener's health package (pkg/utils/kubernetes/health). Each object is in
the seed, in the namespace of the checked object, or, with `shoot_namespace`, in that namespace of
the shoot.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping

import attrs

from actuator.errors import ErrorCode
from actuator.interface import SHOOT_ACCESS, Permission, Resource
from actuator.meta import Raw
from generic.library.healthchecks.model import HealthCheck, HealthContext, HealthResult
from generic.library.lookup import find
from generic.library.machines import MACHINE_DEPLOYMENTS
from generic.library.managedresources.kind import HEALTH, MANAGED_RESOURCES

_CONFIGURATION_PROBLEM = re.compile("error during apply of object .* is invalid:", re.IGNORECASE)
_MAX_SHOWN = 8192
"""Maximum characters of one value. The time of the search above grows with the square of a text."""

Problem = Callable[[Raw], str | None]
"""Return the problem of an object, or None."""


@attrs.frozen
class BuiltIn:
    """A check that defines its permissions in the seed."""

    run: HealthCheck
    permissions: tuple[Permission, ...]

    def __call__(self, ctx: HealthContext) -> HealthResult:
        """See HealthCheck. Raises ApiError if an object could not be read."""
        return self.run(ctx)


def managed_resource(name: str) -> HealthCheck:
    """Check that the ManagedResource `name` is applied in its current state, and healthy."""
    return _object("managed resource", MANAGED_RESOURCES, name, "", _managed_resource_problem)


def deployment(name: str, *, shoot_namespace: str = "") -> HealthCheck:
    """Check that the Deployment `name` is available and its rollout progresses."""
    return _app("deployment", name, shoot_namespace, _deployment_problem)


def stateful_set(name: str, *, shoot_namespace: str = "") -> HealthCheck:
    """Check that the StatefulSet `name` has all its replicas ready."""
    return _app("stateful set", name, shoot_namespace, _stateful_set_problem)


def daemon_set(name: str, *, shoot_namespace: str = "") -> HealthCheck:
    """Check that the unavailable pods of the DaemonSet `name` are within its update strategy."""
    return _app("daemon set", name, shoot_namespace, _daemon_set_problem)


def machines() -> HealthCheck:
    """Check that no machine failed, and each MachineDeployment in the namespace is healthy.

    The equivalent of Gardener's check of nodes. `nodes` also reads the nodes of the shoot.
    """
    return BuiltIn(_check_machines, (MACHINE_DEPLOYMENTS.permission("list"),))


def _app(what: str, name: str, shoot_namespace: str, problem: Problem) -> BuiltIn:
    resource = Resource("apps/v1", f"{what.replace(' ', '')}s")
    return _object(what, resource, name, shoot_namespace, problem)


def _object(
    what: str, resource: Resource, name: str, shoot_namespace: str, problem: Problem
) -> BuiltIn:
    """Return a check that the object exists and has no problem."""

    def check(ctx: HealthContext) -> HealthResult:
        client = ctx.shoot if shoot_namespace else ctx.seed
        namespace = shoot_namespace or ctx.namespace
        label = f'{what} "{name}" in namespace "{namespace}"'
        obj = find(client, resource, name, namespace)
        if obj is None:
            return HealthResult.unhealthy(f"{label} not found")
        found = problem(obj)
        if found is None:
            return HealthResult.healthy()
        detail = f"{label} is unhealthy: {found}"
        return HealthResult.unhealthy(detail, _codes(detail))

    return BuiltIn(check, (SHOOT_ACCESS if shoot_namespace else resource.permission("get"),))


def _check_machines(ctx: HealthContext) -> HealthResult:
    found = ctx.seed.list(MACHINE_DEPLOYMENTS, ctx.namespace)
    problem = next((problem for item in found for problem in machine_problems(item)), None)
    return HealthResult.unhealthy(problem) if problem else HealthResult.healthy()


def _codes(detail: str) -> tuple[ErrorCode, ...]:
    """Return the code for user configuration if the API server refused an object as invalid."""
    problem = _CONFIGURATION_PROBLEM.search(detail)
    return (ErrorCode.ERR_CONFIGURATION_PROBLEM,) if problem else ()


def _problem(
    obj: Raw, needs: Mapping[str, str], may: Mapping[str, str] | None = None
) -> str | None:
    """Return the problem: an outdated generation, or a condition with another status.

    Conditions in `needs` must exist with that status; those in `may` only if they exist.
    """
    observed = _status(obj).get("observedGeneration") or 0
    generation = obj["metadata"].get("generation") or 0
    if observed < generation:
        return f"observed generation outdated ({shown(observed)}/{shown(generation)})"
    conditions = {shown(c.get("type")): c for c in _status(obj).get("conditions") or ()}
    missing = next((type for type in needs if type not in conditions), None)
    if missing is not None:
        return f'condition "{missing}" is missing'
    for type, wanted in {**needs, **(may or {})}.items():
        found = conditions.get(type)
        if found is not None and found.get("status") != wanted:
            is_ = f"{shown(found.get('status'))} (expected {wanted})"
            why = ": ".join(shown(found.get(key)) for key in ("reason", "message"))
            return f'condition "{type}" has invalid status {is_} due to {why}'
    return None


def _managed_resource_problem(obj: Raw) -> str | None:
    return _problem(obj, dict.fromkeys(HEALTH, "True"))


def _deployment_problem(obj: Raw) -> str | None:
    return _problem(obj, {"Available": "True"}, {"Progressing": "True", "ReplicaFailure": "False"})


def _stateful_set_problem(obj: Raw) -> str | None:
    wanted = obj["spec"].get("replicas", 1)
    ready = _status(obj).get("readyReplicas") or 0
    few = f"not enough ready replicas ({shown(ready)}/{shown(wanted)})"
    return _problem(obj, {}) or (few if ready < wanted else None)


def _daemon_set_problem(obj: Raw) -> str | None:
    status = _status(obj)
    unavailable = status.get("numberUnavailable") or 0
    allowed = _max_unavailable(obj, status.get("desiredNumberScheduled") or 0)
    if unavailable > allowed:
        many = f"too many unavailable pods found ({shown(unavailable)}, only {allowed} allowed)"
        return _problem(obj, {}) or many
    return _problem(obj, {})


def _max_unavailable(obj: Raw, desired: int) -> int:
    """Return how many pods may be unavailable during an update; a share is rounded down."""
    strategy = obj["spec"].get("updateStrategy") or {}
    value = (strategy.get("rollingUpdate") or {}).get("maxUnavailable") or 0
    if isinstance(value, str) and value.endswith("%"):
        return math.floor(desired * float(value[:-1]) / 100)
    return int(value)


def machine_problems(obj: Raw) -> Iterator[str]:
    """Yield each failed machine of a MachineDeployment, and the problem of its conditions."""
    meta = obj["metadata"]
    for machine in _status(obj).get("failedMachines") or ():
        why = (machine.get("lastOperation") or {}).get("description")
        yield f'machine "{machine.get("name")}" failed: {why}'
    may = {"Progressing": "True", "ReplicaFailure": "False", "Frozen": "False"}
    problem = _problem(obj, {"Available": "True"}, may)
    if problem is not None:
        label = f'machine deployment "{meta["name"]}" in namespace "{meta["namespace"]}"'
        yield f"{label} is unhealthy: {problem}"


def shown(value: object) -> str:
    """Return the beginning of a value for a message: a shoot can send any type and length."""
    return "?" if isinstance(value, (dict, list)) else str(value)[:_MAX_SHOWN]


def _status(obj: Raw) -> Raw:
    status: Raw = obj.get("status") or {}
    return status

"""A pod as the process kubelet reads it: what it may ask for, and what its status says. Pure.

A pod's spec comes from whoever may create pods. Only parts that this module knows are used, and a
part that would start, load, read or write anything outside the pod's own folder is refused.
Kubernetes documentation, "Pod v1 core".

Init containers, lifecycle hooks, resources and security contexts have no effect.

Not here: files (`volumes`), command lines (`images`), the life of a pod (`kubelet`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath

from attrs import field, frozen

from actuator.meta import Raw, format_time

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUMES = ("configMap", "downwardAPI", "emptyDir", "projected", "secret")
_UNSUPPORTED = ("envFrom", "volumeDevices")
_LOADER = re.compile(r"(LD_|DYLD_|GLIBC_|PYTHON)\w*|PATH|HOME|\w*KUBECONFIG")
_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")

Data = Mapping[str, bytes]
Read = Callable[[str, str, str], Data | None]
"""Returns the data of a Secret or ConfigMap: by kind, namespace and name; None if it is missing."""


class PodRefused(Exception):
    """A pod that must not run; one sentence for its status. It stays so: a spec does not change."""


class Missing(Exception):
    """A pod that cannot run yet; one sentence for its status."""


@frozen
class ContainerState:
    """The state of a container, for the status of its pod."""

    state: Raw
    ready: bool = False
    restarts: int = 0
    last: Raw = field(factory=dict)


def is_deleting(pod: Raw) -> bool:
    """Whether the pod is being deleted."""
    return pod["metadata"].get("deletionTimestamp") is not None


def has_ended(pod: Raw) -> bool:
    """Whether all containers ended for good."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def controller_of(pod: Raw) -> Raw:
    """Return the reference to the pod's controller, or {}."""
    owners = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})


def image_name(image: str) -> str:
    """Return the last part of an image's repository: "registry/a/name:tag@digest" is "name"."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def check(pod: Raw, container: Raw) -> None:
    """Raises Refused if the pod asks for anything that a process of the landscape does not get."""
    for volume in pod["spec"].get("volumes") or ():
        check_volume(volume)
    for part in _UNSUPPORTED:
        if container.get(part):
            raise PodRefused(f"container {container['name']}: {part} is not supported.")
    for mount in container.get("volumeMounts") or ():
        path = PurePosixPath(mount["mountPath"])
        if not path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
            raise PodRefused(
                f"mountPath {mount['mountPath']!r} is not a path inside the container."
            )
        if mount.get("subPathExpr"):
            raise PodRefused("subPathExpr is not supported; use subPath.")
        inside(mount.get("subPath") or ".", "subPath")
    for variable in container.get("env") or ():
        if _LOADER.fullmatch(variable["name"].upper()):
            raise PodRefused(
                f"environment variable {variable['name']} changes what a process loads or where"
                " it connects."
            )


def check_volume(volume: Raw) -> None:
    """Raises Refused if the volume is of a kind that is not supported, such as hostPath."""
    kinds = [kind for kind in volume if kind != "name"] or ["emptyDir"]
    for kind in kinds:
        if kind not in _VOLUMES:
            raise PodRefused(
                f"volume {volume['name']} is a {kind}; supported are {', '.join(_VOLUMES)}."
            )


def inside(path: str, what: str) -> PurePosixPath:
    """Return a path relative to a folder. Raises Refused if it leaves the folder."""
    found = PurePosixPath(path)
    if found.is_absolute() or ".." in found.parts or "\0" in path:
        raise PodRefused(f"{what} {path!r} leaves its volume.")
    return found


def field_of(pod: Raw, path: str) -> str:
    """Return a field for a variable or file. Raises Refused if it is not supported."""
    meta = pod["metadata"]
    spec = pod["spec"]
    if found := _FIELD.fullmatch(path):
        return str((meta.get(found[1]) or {}).get(found[2], ""))
    fields = {
        **{f"metadata.{name}": meta.get(name) for name in ("name", "namespace", "uid")},
        **{f"spec.{name}": spec.get(name) for name in ("nodeName", "serviceAccountName")},
        **dict.fromkeys(("status.hostIP", "status.podIP"), "127.0.0.1"),
    }
    if path not in fields:
        raise PodRefused(f"the field {path} is not supported.")
    return str(fields[path] or "")


def environ(pod: Raw, container: Raw, read: Read) -> dict[str, str]:
    """Return the variables of a container. Raises Missing and Refused."""
    found: dict[str, str] = {}
    for variable in container.get("env") or ():
        value = variable.get("value")
        if source := variable.get("valueFrom"):
            value = _value(pod, source, read)
        if value is not None:
            found[variable["name"]] = expand(value, found)
    return found


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)`, as in commands, arguments and variables; unknown names stay."""

    def replacement(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])

    return _VARIABLE.sub(replacement, text)


def _value(pod: Raw, source: Raw, read: Read) -> str | None:
    if found := source.get("fieldRef"):
        return field_of(pod, found["fieldPath"])
    for form, kind in (("secretKeyRef", "secrets"), ("configMapKeyRef", "configmaps")):
        if found := source.get(form):
            data = read(kind, pod["metadata"]["namespace"], found["name"]) or {}
            if found["key"] in data:
                return data[found["key"]].decode(errors="replace")
            if found.get("optional"):
                return None
            raise Missing(f"{kind} {found['name']!r} has no key {found['key']!r}.")
    raise PodRefused(f"a variable from {', '.join(source)} is not supported.")


def ports_of(container: Raw) -> dict[str | int, int]:
    """Return the numbers of a container's ports, by number and by name."""
    declared = container.get("ports") or ()
    numbers: dict[str | int, int] = {
        item["containerPort"]: item["containerPort"] for item in declared
    }
    return numbers | {item["name"]: item["containerPort"] for item in declared if item.get("name")}


def status(pod: Raw, containers: Sequence[ContainerState], message: str, now: datetime) -> Raw:
    """Return the new status; `message` is the reason why the pod is not ready."""
    old = pod.get("status") or {}
    is_ready = all(container.ready for container in containers)
    phase = _phase(containers)
    states = {"PodScheduled": True, "Initialized": True, "ContainersReady": is_ready}
    states["Ready"] = is_ready
    known = {condition["type"]: condition for condition in old.get("conditions") or ()}
    conditions = []
    for kind, is_true in states.items():
        condition = {"type": kind, "status": str(is_true)}
        if not is_true and phase == "Succeeded":
            condition["reason"] = "PodCompleted"
        elif not is_true:
            condition |= {"reason": "ContainersNotReady", "message": message}
        before = known.get(kind) or {}
        same = before.get("status") == condition["status"]
        since = before.get("lastTransitionTime") if same else None
        conditions.append({**condition, "lastTransitionTime": since or format_time(now)})
    specs = pod["spec"]["containers"]
    return {
        **old,
        "phase": phase,
        "startTime": old.get("startTime") or format_time(now),
        "conditions": conditions,
        "containerStatuses": [
            _container_status(spec, item) for spec, item in zip(specs, containers, strict=True)
        ],
    }


def _phase(containers: Sequence[ContainerState]) -> str:
    ended = [
        container.state["terminated"] for container in containers if "terminated" in container.state
    ]
    if len(ended) == len(containers):
        return "Failed" if any(item["exitCode"] for item in ended) else "Succeeded"
    has_run = any(
        "running" in container.state or container.last or container.restarts
        for container in containers
    )
    return "Running" if has_run else "Pending"


def _container_status(spec: Raw, one: ContainerState) -> Raw:
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": "",
        "ready": one.ready,
        "started": "running" in one.state,
        "restartCount": one.restarts,
        "state": one.state,
        "lastState": one.last,
    }

"""The processes of one pod: which containers have one, and what the pod's status says of them.

A container whose image is not in the table has none: it counts as running and ready, or as
completed in a Job. The pods of one ReplicaSet may have fewer processes than pods (`Image`).

Not here: the process of a container (`runs`), the pod in the API (`kubelet`).
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from attrs import frozen

from actuator.errors import ApiError
from actuator.interface import Clock
from actuator.meta import Raw, format_time
from generic.controller.workqueue import Backoff
from generic.library.programs.errors import EnvtestError
from generic.library.programs.processes import Processes
from generic.testing.landscape.containers import Image
from generic.testing.landscape.pods import (
    ContainerState,
    Missing,
    PodRefused,
    check,
    controller_of,
    image_name,
)
from generic.testing.landscape.runs import ContainerRun
from generic.testing.landscape.sandbox import Command, Sandbox, SandboxWorld
from generic.testing.landscape.services import Endpoints

_Key = tuple[str, str]


class Claims:
    """The processes of containers by ReplicaSet, within the maximum of their image; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[_Key, dict[str, ContainerRun]] = {}

    def claim(self, key: _Key, uid: str, run: ContainerRun, most: int) -> bool:
        """Return whether the container of a pod gets a process, which it keeps then."""
        with self._lock:
            claims = self._runs.setdefault(key, {})
            if not most or len(claims) < most:
                claims.setdefault(uid, run)
            return uid in claims

    def is_ready(self, key: _Key) -> bool:
        """Return whether a pod with a process is ready."""
        with self._lock:
            return any(run.is_ready for run in self._runs.get(key, {}).values())

    def release(self, uid: str) -> None:
        """Free the processes of a pod for others."""
        with self._lock:
            for key, claims in list(self._runs.items()):
                claims.pop(uid, None)
                if not claims:
                    del self._runs[key]


@frozen
class Means:
    """The dependencies that all pods of one kubelet share."""

    world: SandboxWorld
    images: Mapping[str, Image]
    processes: Processes
    clock: Clock
    backoff: Backoff
    claims: Claims


class PodRuns:
    """The processes of one pod; for one thread at a time."""

    def __init__(self, pod: Raw, means: Means) -> None:
        meta = pod["metadata"]
        self.uid = str(meta["uid"])
        self.refused = ""
        """The reason why the pod must not run, if it must not."""
        self.kill_at: float | None = None
        """The end of the grace period, on the monotonic clock, once the pod is being deleted."""
        self._pod = pod
        self._means = means
        since = (pod.get("status") or {}).get("startTime")
        self._since = since or format_time(means.clock.now())
        self._owner = str(controller_of(pod).get("uid") or self.uid)
        self._sandbox = Sandbox(pod, means.world)
        self._images: dict[str, Image] = {}
        self._runs: dict[str, ContainerRun] = {}
        for spec in pod["spec"]["containers"]:
            if image := means.images.get(image_name(spec["image"])):
                name = f"{meta['namespace']}_{meta['name'][-80:]}_{spec['name']}_{self.uid[:8]}"
                self._images[spec["name"]] = image
                self._runs[spec["name"]] = ContainerRun(
                    name, spec, means.processes, means.clock, means.backoff
                )

    @property
    def has_work(self) -> bool:
        """Whether the next `advance` can do something."""
        return bool(self._runs) and not self.refused

    @property
    def is_alive(self) -> bool:
        """Whether one of the processes runs."""
        return any(run.is_alive for run in self._runs.values())

    def advance(self, pod: Raw) -> Sequence[ContainerState]:
        """Do the next step of each container; return their states. `pod` is its current state."""
        self._pod = pod
        message = ""
        try:
            if self.has_work:
                message = self._advance()
        except PodRefused as refused:
            self.refused = str(refused)
            self.kill()
        return [self._state(spec, message) for spec in self._pod["spec"]["containers"]]

    def endpoints(self) -> Endpoints:
        """Return the local ports in place of the pod's ports."""
        meta = self._pod["metadata"]
        ports: dict[int | str, int] = {}
        for run in self._runs.values():
            ports |= run.endpoints()
        return Endpoints(meta["namespace"], meta.get("labels") or {}, ports)

    def terminate(self) -> None:
        """Send SIGTERM to all processes."""
        for run in self._runs.values():
            run.terminate()

    def kill(self) -> None:
        """Kill all processes."""
        for run in self._runs.values():
            run.kill()

    def discard(self) -> None:
        """Kill all processes, and remove the pod's files."""
        self.kill()
        self._sandbox.remove()
        self._means.claims.release(self.uid)

    def _advance(self) -> str:
        """Return why a container cannot start, or "". Raises Refused."""
        specs = [spec for spec in self._pod["spec"]["containers"] if spec["name"] in self._runs]
        for spec in specs:
            check(self._pod, spec)
        with suppress(Missing, ApiError):  # a program that runs keeps the files that it has
            self._sandbox.refresh()
        policy = self._pod["spec"].get("restartPolicy", "Always")
        for spec in specs:
            if not self._claims(spec["name"]):
                continue
            try:
                self._runs[spec["name"]].advance(partial(self._command, spec), policy)
            except (Missing, ApiError, EnvtestError) as error:
                return str(error)
        return ""

    def _command(self, spec: Raw) -> Command:
        name = spec["name"]
        self._sandbox.refresh()
        return self._sandbox.command(spec, self._images[name], self._runs[name].port)

    def _state(self, spec: Raw, message: str) -> ContainerState:
        name = spec["name"]
        if self.refused:
            return ContainerState({"waiting": {"reason": "Refused", "message": self.refused}})
        if name in self._runs and self._claims(name):
            return self._runs[name].state(message)
        since = self._since
        if not self._runs and controller_of(self._pod).get("kind") == "Job":
            ended = {"exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": since}
            return ContainerState({"terminated": ended})
        is_ready = name not in self._runs or self._means.claims.is_ready((self._owner, name))
        return ContainerState({"running": {"startedAt": since}}, is_ready)

    def _claims(self, name: str) -> bool:
        run = self._runs[name]
        most = self._images[name].processes
        return self._means.claims.claim((self._owner, name), self.uid, run, most)

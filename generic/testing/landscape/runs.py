"""Run: the process of one container, which is started, probed, and restarted with growing delays.

Not here: the command line (`sandbox`), the status of the pod (`pods`).
"""

from collections.abc import Callable

from actuator.interface import Clock
from actuator.meta import Raw, format_time
from generic.controller.workqueue import Backoff
from generic.kube.errorinfo import shorten
from generic.library.programs.processes import Process, Processes, tail
from generic.testing.envtest.servers import free_port
from generic.testing.landscape.pods import ContainerState, ports_of
from generic.testing.landscape.probes import succeeds
from generic.testing.landscape.sandbox import Command

STEADY_SECONDS = 600.0
"""A process that ran so long has its next failure count as the first."""
_MESSAGE_BYTES = 2048


class ContainerRun:
    """One container; each `advance` does one step, and none of them waits for the program."""

    def __init__(
        self, name: str, spec: Raw, processes: Processes, clock: Clock, backoff: Backoff
    ) -> None:
        self._name = name
        self._spec = spec
        self._processes = processes
        self._clock = clock
        self._backoff = backoff
        self._process: Process | None = None
        self._local_ports: dict[int, int] = {}
        self._started_at = self._next_start = self._next_probe = 0.0
        self._starts = self._failures = self._missed_probes = 0
        self._since: Raw = {}
        self._ended: Raw = {}
        self._last: Raw = {}
        self.is_ready = False
        """Whether the container is ready by its probe."""

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def port(self, number: int) -> int:
        """Return the local port in place of a port of the container; it is new at each start."""
        return self._local_ports.setdefault(number, free_port())

    def endpoints(self) -> dict[int | str, int]:
        """Return the local ports by number and name of the container's ports."""
        local = self._local_ports
        ports: dict[int | str, int] = dict(local.items())
        return ports | {n: local[port] for n, port in ports_of(self._spec).items() if port in local}

    def state(self, message: str = "") -> ContainerState:
        """Return the state for the status of the pod; `message` tells why it cannot start."""
        restarts = max(0, self._starts - 1)
        if self._ended:
            return ContainerState({"terminated": self._ended}, restarts=restarts)
        if self._process is not None:
            return ContainerState({"running": self._since}, self.is_ready, restarts, self._last)
        reason = "CrashLoopBackOff" if self._failures else "ContainerCreating"
        waiting = {"reason": reason, "message": message}
        return ContainerState({"waiting": waiting}, False, restarts, self._last)

    def advance(self, prepare: Callable[[], Command], restart_policy: str) -> None:
        """Note an exit, start the process if it is time, and probe it.

        `prepare` returns the command line of a start; its exceptions are raised.
        """
        now = self._clock.monotonic()
        if self._process is not None and (code := self._process.poll()) is not None:
            self._note_exit(code, restart_policy)
        if self._process is None and not self._ended and now >= self._next_start:
            self._start(prepare)
        if self._process is not None and (not self.is_ready or now >= self._next_probe):
            self._probe(self._spec.get("readinessProbe") or {})

    def terminate(self) -> None:
        """Send SIGTERM."""
        if self._process is not None:
            self._process.terminate()
        self.is_ready = False

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end of the process."""
        self._processes.kill(self._name)
        self.is_ready = False

    def _start(self, prepare: Callable[[], Command]) -> None:
        self._local_ports.clear()
        command = prepare()
        for number in _ports(self._spec):
            self.port(number)
        self._process = self._processes.start(
            self._name, command.words, command.environ, command.cwd
        )
        self._starts += 1
        self._started_at = self._clock.monotonic()
        self._missed_probes = 0
        self._since = {"startedAt": format_time(self._clock.now())}

    def _note_exit(self, code: int, restart_policy: str) -> None:
        self._process = None
        self.is_ready = False
        ended = {
            "exitCode": code if code >= 0 else 128 - code,
            "reason": "Error" if code else "Completed",
            "message": shorten(tail(self._processes.log(self._name)), _MESSAGE_BYTES),
            "finishedAt": format_time(self._clock.now()),
            **self._since,
        }
        if restart_policy == "Never" or (restart_policy == "OnFailure" and code == 0):
            self._ended = ended
            return
        now = self._clock.monotonic()
        self._failures = 1 if now - self._started_at >= STEADY_SECONDS else self._failures + 1
        self._next_start = now + self._backoff.delay(self._failures)
        self._last = {"terminated": ended}

    def _probe(self, probe: Raw) -> None:
        self._next_probe = self._clock.monotonic() + float(probe.get("periodSeconds") or 10)
        if succeeds(probe, self.endpoints().get):
            self.is_ready = True
            self._missed_probes = 0
            return
        self._missed_probes += 1
        if self._missed_probes >= int(probe.get("failureThreshold") or 3):
            self.is_ready = False


def _ports(spec: Raw) -> set[int]:
    """Return the ports that a container declares, or that its probe uses without a declaration."""
    probe = spec.get("readinessProbe") or {}
    probed = (probe.get("httpGet") or probe.get("tcpSocket") or {}).get("port")
    return {*ports_of(spec).values(), *([probed] if isinstance(probed, int) else [])}

"""The embedded cluster: etcd, kube-apiserver and kube-controller-manager as child processes.

Real programs, no fake. Differences from a cluster of a cloud provider: one etcd that does not
sync to disk, no nodes, no scheduler, only the controllers for garbage collection, namespace
deletion, ServiceAccounts and the root CA.

Not here: command lines and credentials (servers.py), the source of the programs (binaries.py).
"""

import socket
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from attrs import frozen

from actuator.errors import ApiError
from generic.kube.client import HttpClient
from generic.library.programs.cache import Progress
from generic.library.programs.errors import EnvtestError
from generic.library.programs.processes import Processes
from generic.testing.envtest.access import ClusterAccess
from generic.testing.envtest.binaries import Binaries, find_binaries
from generic.testing.envtest.servers import (
    CONTROLLER_MANAGER,
    ETCD_CLIENTS,
    HOST,
    KillableServer,
    apiserver_command,
    controller_manager_command,
    etcd_command,
    reserve_port,
    write_credentials,
)

ETCD_SECONDS = 60.0
APISERVER_SECONDS = 180.0


def silent(_line: str) -> None:
    """Ignore a progress line."""


@frozen
class _EnvironmentParts:
    """The parts of a started environment.

    The port stays reserved while the environment lives, also while the API server is down.
    """

    binaries: Binaries
    processes: Processes
    port: socket.socket


class Environment(ClusterAccess):
    """An embedded cluster, for use in a `with` statement or with `start()` and `stop()`.

    Guarantees: after `start()` the API server is ready. After `stop()`, or soon after this
    process ends, none of its processes and directories remains. Any number may run at once.

    `start()` raises EnvtestError, whose text has the end of the log and the folder of the kept
    logs, or the ways to install a program. While it does not run, everything but `start()` and
    `stop()` raises EnvtestError.

    `flags` are more command line flags of a program, by its name; they come last, so they replace
    a flag that has one value and extend one that is a list. Relative paths are in `directory`.
    """

    def __init__(
        self, progress: Progress = silent, flags: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._progress = progress
        self._flags = flags or {}
        self._running: _EnvironmentParts | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://{HOST}:{self._started.port.getsockname()[1]}"

    @property
    def directory(self) -> Path:
        """The folder of all its files; `stop` removes it."""
        return self._started.processes.directory

    def start(self) -> None:
        """Build the programs if needed, start the processes and wait for the API server."""
        if self._running is not None:
            raise EnvtestError("the environment is running already")
        binaries = find_binaries(self._progress)
        processes = Processes(Path(tempfile.mkdtemp(prefix="actuator-envtest-")))
        self._running = _EnvironmentParts(binaries, processes, reserve_port())
        try:
            self._run(KillableServer.ETCD, etcd_command(binaries))
            write_credentials(self)
            self._await_etcd()
            self.restart(KillableServer.APISERVER)
            kubeconfig = self.user_kubeconfig(f"system:{CONTROLLER_MANAGER}", ["system:masters"])
            self._run(CONTROLLER_MANAGER, controller_manager_command(binaries, kubeconfig))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill all processes and remove the directory. Calling it again does nothing.

        Without SIGTERM: the API server ignores it while etcd is down, and the data is removed.
        """
        running = self._running
        self._running = None
        if running is not None:
            running.processes.close()
            running.port.close()

    def stop_apiserver(self) -> None:
        """Stop the API server gracefully: it refuses new requests and ends the watches."""
        self._started.processes.stop(KillableServer.APISERVER)

    def kill(self, server: KillableServer) -> None:
        """Kill the server, like a crash. If it is down, do nothing."""
        self._started.processes.kill(server)

    def restart(self, server: KillableServer) -> None:
        """Start the server if it is down, and wait until the API server is ready; objects are kept.

        The API server cannot start without etcd, so etcd is started first if it is down. Running
        servers are not changed. Raises EnvtestError.
        """
        running = self._started
        if not running.processes.is_running(KillableServer.ETCD):
            clients = self.directory / ETCD_CLIENTS
            clients.unlink(missing_ok=True)  # a killed etcd does not remove it
            self._run(KillableServer.ETCD, etcd_command(running.binaries))
            self._await_etcd()
        if server is KillableServer.APISERVER and not running.processes.is_running(server):
            port = running.port.getsockname()[1]
            self._run(server, apiserver_command(running.binaries, port))
        if server is KillableServer.APISERVER or running.processes.is_running(
            KillableServer.APISERVER
        ):
            client = self._connect()  # once for all looks
            ready = partial(_is_ready, client)
            running.processes.wait_until(KillableServer.APISERVER, ready, APISERVER_SECONDS)

    @property
    def _started(self) -> _EnvironmentParts:
        if self._running is None:
            raise EnvtestError("the environment is not running")
        return self._running

    def _run(self, name: str, command: list[str]) -> None:
        self._started.processes.start(name, [*command, *self._flags.get(name, ())])

    def _await_etcd(self) -> None:
        ready = (self.directory / ETCD_CLIENTS).is_socket
        self._started.processes.wait_until(KillableServer.ETCD, ready, ETCD_SECONDS)


def _is_ready(client: HttpClient) -> bool:
    try:
        client.send("GET", "/readyz")
    except ApiError:
        return False
    return True

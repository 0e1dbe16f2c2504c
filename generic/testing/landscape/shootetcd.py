"""The etcd of each shoot: a real one, on a Unix socket in a private folder.

In a seed, etcd-druid runs etcd in pods. Here one etcd runs for each namespace, without snapshots.
It keeps its data while the API server of the shoot does not run, as in hibernation.

Not here: the status of Etcd objects.
"""

import shutil
import threading
from pathlib import Path

from generic.library.programs.processes import Processes
from generic.testing.envtest.servers import ETCD_CLIENTS, Server, etcd_command

START_SECONDS = 60.0


class ShootEtcds:
    """One etcd for each namespace that asks for it; safe to use from any thread."""

    def __init__(self, program: Path, folder: Path, processes: Processes) -> None:
        """`folder` must be private; paths of sockets in it are relative, so it may be long."""
        self._command = etcd_command({Server.ETCD: program})
        self._folder = folder
        self._processes = processes
        self._lock = threading.Lock()

    def start(self, namespace: str) -> Path:
        """Start the etcd of a namespace if it does not run; return its folder.

        `unix://clients:1` is its address for a program that runs in that folder. Raises
        EnvtestError.
        """
        folder, name = self._folder / namespace, f"etcd-{namespace}"
        with self._lock:
            if self._processes.is_running(name):
                return folder
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            socket = folder / ETCD_CLIENTS
            socket.unlink(missing_ok=True)  # a killed etcd does not remove it
            self._processes.start(name, self._command, cwd=folder)
            self._processes.wait_until(name, socket.is_socket, START_SECONDS)
        return folder

    def remove(self, namespace: str) -> None:
        """Stop the etcd of a namespace, and remove its data."""
        with self._lock:
            self._processes.stop(f"etcd-{namespace}")
            shutil.rmtree(self._folder / namespace, ignore_errors=True)

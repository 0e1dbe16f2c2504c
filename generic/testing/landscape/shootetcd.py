"""The etcd of each shoot: a real one, on a Unix socket in a private folder.

In a seed, etcd-druid runs etcd in pods. Here one etcd runs for each namespace. It keeps its data
while the API server of the shoot does not run, as in hibernation. The only snapshot is the one
that precedes a migration: etcd is stopped, and its data moves to the etcd of the other seed.

Not here: the status of Etcd objects, and the request for the snapshot (snapshots.py).
"""

import shutil
import threading
from pathlib import Path

from generic.library.programs.processes import Processes
from generic.testing.envtest.servers import ETCD_CLIENTS, KillableServer, etcd_command

START_SECONDS = 60.0


class ShootEtcds:
    """One etcd of a seed for each namespace that asks for it; safe to use from any thread."""

    def __init__(self, program: Path, folder: Path, processes: Processes, kept: Path) -> None:
        """`folder` must be private; paths of sockets in it are relative, so it may be long.

        `kept` is the folder of snapshots, the same for all seeds.
        """
        self._command = etcd_command({KillableServer.ETCD: program})
        self._folder = folder
        self._processes = processes
        self._kept = kept
        self._lock = threading.Lock()

    def start(self, namespace: str) -> Path:
        """Start the etcd of a namespace if it does not run; return its folder.

        It begins with the snapshot, if there is one. `unix://clients:1` is its address for a
        program that runs in that folder. Raises EnvtestError.
        """
        folder = self._folder / namespace
        name = self._name(namespace)
        with self._lock:
            if self._processes.is_running(name):
                return folder
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not folder.exists() and (kept := self._kept / namespace).exists():
                kept.rename(folder)
            folder.mkdir(mode=0o700, exist_ok=True)
            socket = folder / ETCD_CLIENTS
            socket.unlink(missing_ok=True)  # a killed etcd does not remove it
            self._processes.start(name, self._command, cwd=folder)
            self._processes.wait_until(name, socket.is_socket, START_SECONDS)
        return folder

    def snapshot(self, namespace: str) -> None:
        """Stop the etcd of a namespace, and keep its data for the next start in any seed."""
        folder = self._folder / namespace
        with self._lock:
            self._processes.stop(self._name(namespace))
            if folder.exists():
                self._kept.mkdir(mode=0o700, exist_ok=True)
                folder.rename(self._kept / namespace)

    def remove(self, namespace: str) -> None:
        """Stop the etcd of a namespace, and remove its data."""
        with self._lock:
            self._processes.stop(self._name(namespace))
            shutil.rmtree(self._folder / namespace, ignore_errors=True)

    def _name(self, namespace: str) -> str:
        return f"etcd-{namespace}-{self._folder.parent.name}"

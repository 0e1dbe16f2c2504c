"""The embedded cluster: etcd, kube-apiserver and kube-controller-manager as child processes.

Real programs, no fake. What differs from a cluster of a cloud provider: one etcd that does not
sync to disk, no nodes, no scheduler, of the controllers only garbage collection and namespace
deletion, no admission by service account (nothing would make the accounts that pods need).

Not here: how the processes are run (servers.py), where their programs come from (binaries.py).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from generic.library.programs.cache import Progress
from generic.library.programs.errors import EnvtestError
from generic.testing.envtest.access import Access
from generic.testing.envtest.binaries import find_binaries
from generic.testing.envtest.servers import Servers


def silent(_line: str) -> None:
    """Progress for those who don't want any."""


class Environment:
    """An embedded cluster, for use in a `with` statement or with `start()` and `stop()`.

    Guarantees: after `start()` the API server is ready; after `stop()`, or soon after this
    process is gone, no process and no directory of it is left. Any number may run at once.

    `start()` raises StartFailed, whose text has the end of the log and keeps the logs where it
    says; BinariesNotFound; or another EnvtestError.
    """

    def __init__(self, progress: Progress = silent) -> None:
        self._progress = progress
        self._running: Servers | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the processes and wait for the API server; building the programs comes first."""
        if self._running is not None:
            raise EnvtestError("the environment is running already")
        running = Servers(find_binaries(self._progress))
        try:
            running.start()
        except BaseException:
            running.close()
            raise
        self._running = running

    def stop(self) -> None:
        """Stop everything and remove the directory. Calling it again does nothing."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def stop_apiserver(self) -> None:
        """Stop the API server in good order: it refuses new requests and ends the watches."""
        self._started.stop_apiserver()

    def kill_apiserver(self) -> None:
        """Kill the API server, as a crash would."""
        self._started.kill_apiserver()

    def start_apiserver(self) -> None:
        """Start the API server again, at the same address, and wait until it is ready."""
        self._started.start_apiserver()

    def restart_apiserver(self) -> None:
        """Stop the API server and start it again; all objects are kept."""
        self.stop_apiserver()
        self.start_apiserver()

    def is_running(self, program: str) -> bool:
        """Whether the process of `etcd`, `kube-apiserver`, or the controller manager is there."""
        return self._started.is_running(program)

    def kill_etcd(self) -> None:
        """Kill etcd, as a crash would; the API server runs on without its storage."""
        self._started.kill_etcd()

    def start_etcd(self) -> None:
        """Start etcd again with all it had stored, and wait until the API server is ready."""
        self._started.start_etcd()

    @property
    def access(self) -> Access:
        """How to reach the environment; of use to other processes too."""
        return self._started.access

    @property
    def url(self) -> str:
        """The API server's address."""
        return self.access.url

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator (group system:masters), mode 0600."""
        return self.access.kubeconfig

    @property
    def ca_file(self) -> Path:
        """The certificate authority of the API server, PEM."""
        return self.access.ca_file

    @property
    def admin_token(self) -> str:
        """The bearer token of the administrator."""
        return self.access.admin_token

    @property
    def logs(self) -> Path:
        """The folder of the processes' logs; it goes with the environment."""
        return self.access.logs

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a new kubeconfig for any user name; see `Access.user_kubeconfig`."""
        return self.access.user_kubeconfig(user, groups)

    @property
    def _started(self) -> Servers:
        if self._running is None:
            raise EnvtestError("the environment is not running")
        return self._running

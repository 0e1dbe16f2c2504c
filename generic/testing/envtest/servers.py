"""The processes of one embedded cluster: their command lines, their order, their readiness.

etcd listens on Unix sockets in the environment's private directory: no port, and nobody else on
the machine reads it. The API server listens on 127.0.0.1 at a port that stays reserved as long as
the environment lives, also while the API server is down. The controller manager serves nothing.

While etcd is down the API server ignores SIGTERM, so etcd goes last or all are killed.
"""

import http.client
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from generic.library.programs.errors import EnvtestError, StartFailed
from generic.library.programs.processes import Process, ProcessGroup, kill, stop
from generic.testing.envtest.access import Access, RequestFailed
from generic.testing.envtest.binaries import Binaries

ETCD_SECONDS = 20.0
APISERVER_SECONDS = 60.0
STOP_SECONDS = 5.0
POLL_SECONDS = 0.05
TAIL_LINES = 15

HOST = "127.0.0.1"
# File names of sockets. etcd insists on the form host:port.
ETCD_CLIENTS = "clients:1"
ETCD_PEERS = "peers:1"

ETCD = "etcd"
APISERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"


class Servers:
    """One cluster's processes, port and directory."""

    def __init__(self, binaries: Binaries) -> None:
        self._binaries = binaries
        self._port = reserve_port()
        self._group = ProcessGroup(Path(tempfile.mkdtemp(prefix="actuator-envtest-")))
        self._processes: dict[str, Process] = {}
        url = f"https://{HOST}:{self._port.getsockname()[1]}"
        self.access = Access(url, self._group.directory)

    def start(self) -> None:
        """Start all; the API server is ready then, the controller manager about to be."""
        self.access.logs.mkdir()
        self._run(ETCD, etcd_command(self._binaries))
        write_credentials(self.access)
        self._await_etcd()
        self.start_apiserver()
        kubeconfig = self.access.user_kubeconfig(f"system:{CONTROLLER_MANAGER}", ["system:masters"])
        self._run(CONTROLLER_MANAGER, controller_manager_command(self._binaries, kubeconfig))

    def start_apiserver(self) -> None:
        """Start the API server and wait until it is ready."""
        if self.is_running(APISERVER):
            raise EnvtestError("the API server is running already")
        self._run(APISERVER, apiserver_command(self._binaries, self._port.getsockname()[1]))
        self._await(APISERVER, APISERVER_SECONDS, self._is_ready)

    def stop_apiserver(self) -> None:
        """Let the API server end in good order, within bounds. If it is down, do nothing."""
        if self.is_running(APISERVER):
            stop(self._processes[APISERVER], STOP_SECONDS)

    def kill_apiserver(self) -> None:
        """End the API server at once. If it is down, do nothing."""
        if self.is_running(APISERVER):
            kill(self._processes[APISERVER])

    def start_etcd(self) -> None:
        """Start etcd with what it has stored, and wait until a running API server uses it."""
        if self.is_running(ETCD):
            raise EnvtestError("etcd is running already")
        (self._group.directory / ETCD_CLIENTS).unlink(missing_ok=True)  # what was killed left it
        self._run(ETCD, etcd_command(self._binaries))
        self._await_etcd()
        if self.is_running(APISERVER):
            self._await(APISERVER, APISERVER_SECONDS, self._is_ready)

    def kill_etcd(self) -> None:
        """End etcd at once. If it is down, do nothing."""
        if self.is_running(ETCD):
            kill(self._processes[ETCD])

    def is_running(self, name: str) -> bool:
        """Whether the process `name` is there."""
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def close(self) -> None:
        """End all processes at once (their data go anyway), remove the directory, free the port."""
        for process in self._processes.values():
            kill(process)
        self._group.close()
        self._port.close()

    def _run(self, name: str, command: list[str]) -> None:
        environ = {"HOME": str(self._group.directory), "PATH": os.defpath}
        with self._log(name).open("ab") as log:
            self._processes[name] = self._group.start(command, log, environ)

    def _await_etcd(self) -> None:
        self._await(ETCD, ETCD_SECONDS, (self._group.directory / ETCD_CLIENTS).is_socket)

    def _await(self, name: str, seconds: float, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            status = self._processes[name].poll()
            if status is not None:
                raise self._failure(name, f"ended with status {status}")
            if time.monotonic() > deadline:
                raise self._failure(name, f"was not ready within {seconds:.0f} s")
            time.sleep(POLL_SECONDS)

    def _is_ready(self) -> bool:
        try:
            self.access.request("GET", "/readyz")
        except (OSError, RequestFailed, http.client.HTTPException):
            return False
        return True

    def _failure(self, name: str, what: str) -> StartFailed:
        """Copy the logs to a folder that outlives the environment, and name it."""
        kept = Path(f"{self._group.directory}-logs")
        shutil.copytree(self.access.logs, kept, dirs_exist_ok=True)
        tail = self._log(name).read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return StartFailed(
            "\n".join([f"{name} {what}; logs are in {kept}; the last lines:", *tail])
        )

    def _log(self, name: str) -> Path:
        return self.access.logs / f"{name}.log"


def reserve_port() -> socket.socket:
    """Return a socket bound to a free port of the loopback address.

    It never listens. The API server shares the port (SO_REUSEPORT, which the kernel grants to the
    same user only), so nobody takes the port between two of its starts, nor before the first.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind((HOST, 0))
    return reserved


def free_port() -> int:
    """A port of the loopback address that was free just now: for servers that are told one."""
    with reserve_port() as reserved:
        port: int = reserved.getsockname()[1]
        return port


def write_credentials(access: Access) -> None:
    """Make the authority, the serving certificate, the token and the administrator's kubeconfig."""
    from generic.testing.envtest.certificates import (  # optional
        Authority,
        new_private_key,
        save_private,
    )

    pki = access.ca_file.parent
    pki.mkdir()
    (access.directory / "users").mkdir()
    authority = Authority.new("actuator-envtest")
    authority.key_pair.save(access.ca_file, access.ca_key_file)
    hosts = [HOST, "localhost", "kubernetes.default.svc"]
    authority.serving(hosts).save(pki / "serving.crt", pki / "serving.key")
    save_private(pki / "service-accounts.key", new_private_key())
    token = f"{secrets.token_urlsafe(32)},admin,admin,system:masters\n"
    save_private(access.token_file, token.encode())
    access.write_admin_kubeconfig()


def etcd_command(binaries: Binaries) -> list[str]:
    """Run etcd by itself; it forgets what a power cut forgets, for three times the speed."""
    clients, peers = f"unix://{ETCD_CLIENTS}", f"unix://{ETCD_PEERS}"
    return [
        str(binaries.etcd),
        "--data-dir=etcd",
        "--unsafe-no-fsync",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
    ]


def apiserver_command(binaries: Binaries, port: int) -> list[str]:
    """Run an API server with RBAC, for tokens and client certificates; paths are relative."""
    return [
        str(binaries.kube_apiserver),
        f"--etcd-servers=unix://{ETCD_CLIENTS}",
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={port}",
        "--permit-port-sharing",
        "--tls-cert-file=pki/serving.crt",
        "--tls-private-key-file=pki/serving.key",
        "--client-ca-file=pki/ca.crt",
        "--token-auth-file=pki/tokens.csv",
        "--anonymous-auth=false",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=pki/service-accounts.key",
        "--service-account-signing-key-file=pki/service-accounts.key",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--disable-admission-plugins=ServiceAccount",  # nothing makes the accounts that pods need
        "--endpoint-reconciler-type=none",  # a loopback address is no valid endpoint
        "--shutdown-watch-termination-grace-period=500ms",  # else it waits for every watch to end
    ]


def controller_manager_command(binaries: Binaries, kubeconfig: Path) -> list[str]:
    """Run the two controllers, with a request rate that keeps them from being waited for."""
    return [
        str(binaries.kube_controller_manager),
        f"--kubeconfig={kubeconfig}",
        "--controllers=garbage-collector-controller,namespace-controller",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]

"""The servers of an embedded cluster: their names, ports, credentials and command lines.

etcd listens on Unix sockets in the environment's private directory: no port, and no access for
other users. The API server listens on 127.0.0.1. The controller manager does not listen.

Not here: the order of starts and stops (environment.py).
"""

import secrets
import socket
from enum import StrEnum
from pathlib import Path

from generic.testing.envtest.access import ClusterAccess
from generic.testing.envtest.binaries import Binaries

HOST = "127.0.0.1"
# File names of sockets. etcd insists on the form host:port.
ETCD_CLIENTS = "clients:1"
ETCD_PEERS = "peers:1"
CONTROLLER_MANAGER = "kube-controller-manager"
_CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)


class KillableServer(StrEnum):
    """A server that can be killed. Without etcd the API server answers 5xx or does not answer."""

    APISERVER = "kube-apiserver"
    ETCD = "etcd"


def reserve_port() -> socket.socket:
    """Return a socket bound to a free port of the loopback address.

    It never listens. The API server shares the port (SO_REUSEPORT, which the kernel grants to the
    same user only), so no other process takes the port before its first start or between two.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind((HOST, 0))
    return reserved


def free_port() -> int:
    """Return a currently free port of the loopback address, for servers that need a number."""
    with reserve_port() as reserved:
        port: int = reserved.getsockname()[1]
        return port


def write_credentials(access: ClusterAccess) -> None:
    """Create the authority, serving certificate, token and administrator's kubeconfig."""
    from generic.testing.envtest.certificates import (  # optional
        LocalAuthority,
        new_private_key,
        save_private,
    )

    pki = access.ca_file.parent
    pki.mkdir()
    (access.directory / "users").mkdir()
    authority = LocalAuthority.new("actuator-envtest")
    authority.key_pair.save(access.ca_file, access.ca_key_file)
    hosts = [HOST, "localhost", "kubernetes.default.svc"]
    authority.serving(hosts).save(pki / "serving.crt", pki / "serving.key")
    save_private(pki / "service-accounts.key", new_private_key())
    token = f"{secrets.token_urlsafe(32)},admin,admin,system:masters\n"
    save_private(access.token_file, token.encode())
    access.write_admin_kubeconfig()


def etcd_command(binaries: Binaries) -> list[str]:
    """Run one etcd member without fsync: data may be lost in a power cut, at 3 times the speed."""
    clients = f"unix://{ETCD_CLIENTS}"
    peers = f"unix://{ETCD_PEERS}"
    return [
        str(binaries[KillableServer.ETCD]),
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
        str(binaries[KillableServer.APISERVER]),
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
        "--endpoint-reconciler-type=none",  # a loopback address is not a valid endpoint
        "--shutdown-watch-termination-grace-period=500ms",  # else it waits for every watch to end
    ]


def controller_manager_command(binaries: Binaries, kubeconfig: Path) -> list[str]:
    """Run the controllers that act on namespaces and owners, at a request rate of tests.

    Two of them create objects in each namespace, and create them again at once when they are
    deleted: the ConfigMap kube-root-ca.crt and the ServiceAccount default.
    """
    return [
        str(binaries[CONTROLLER_MANAGER]),
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(_CONTROLLERS)}",
        "--root-ca-file=pki/ca.crt",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]

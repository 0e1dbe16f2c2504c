"""The servers of the embedded cluster, killed and started again; all objects are kept."""

from __future__ import annotations

from enum import StrEnum

from generic.testing.envtest.environment import Environment

__all__ = ["Server", "kill", "restart"]


class Server(StrEnum):
    """What can be killed. Without etcd the API server runs on, and answers 5xx or not at all."""

    APISERVER = "kube-apiserver"
    ETCD = "etcd"


def kill(environment: Environment, server: Server) -> None:
    """End it at once, as a crash would. If it is down, do nothing."""
    if server is Server.ETCD:
        environment.kill_etcd()
    else:
        environment.kill_apiserver()


def restart(environment: Environment, server: Server) -> None:
    """Start what was killed, and wait until it is of use; what runs is left alone.

    The API server cannot start without etcd, so etcd is started first where it is down. Raises
    StartFailed.
    """
    if not environment.is_running(Server.ETCD):
        environment.start_etcd()
    if server is Server.APISERVER and not environment.is_running(Server.APISERVER):
        environment.start_apiserver()

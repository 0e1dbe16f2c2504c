"""Far: the second cluster of a rehearsal, and a closable connection to it; only for drills.

Helm uses it as a user with few permissions, some of which can be revoked.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_WR, create_connection, socket
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import attrs

from actuator import ActuatorError, Client, Forbidden, NotFound, Raw, Resource
from extensions.helmreleaseproxy.kinds import RELEASE_LABEL
from generic import connect
from generic.library import manifest
from generic.testing import Environment, role_binding

_RBAC = "rbac.authorization.k8s.io/v1"
_ROLES = Resource(_RBAC, "clusterroles", namespaced=False)
_BINDINGS = Resource(_RBAC, "clusterrolebindings", namespaced=False)
_SECRETS = Resource("v1", "secrets")
_USER = "helm"
_VERBS = ("get", "list", "create", "update", "patch")
_DENIED_SECONDS = 20.0
_BYTES = 64 * 1024


@contextmanager
def far_cluster() -> Iterator["Far"]:
    """Run an empty embedded cluster while the context is open."""
    with Environment() as environment:
        admin = connect(environment.kubeconfig)
        role = _role("delete")
        admin.create(_ROLES, role)
        admin.create(_BINDINGS, role_binding(role, _USER))
        kubeconfig = environment.user_kubeconfig(_USER)
        with _Forwarder(urlsplit(environment.url).port or 0) as door:
            Thread(target=door.serve_forever, name="door", daemon=True).start()
            moved = kubeconfig.read_bytes().replace(environment.url.encode(), door.url.encode())
            yield Far(admin, connect(kubeconfig), door, moved)
            door.shutdown()


class _Forwarder(ThreadingTCPServer):
    """A free port of the loopback interface that leads to the API server while it is open."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _HelmConnection)
        self.behind = ("127.0.0.1", port)
        self.open = True

    @property
    def url(self) -> str:
        """The address of the API server for helm."""
        return f"https://127.0.0.1:{self.server_address[1]}"

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """See socketserver: a closed door drops the connection before it is read."""
        return self.open


class _HelmConnection(BaseRequestHandler):
    """A connection of helm, whose bytes are passed on in both directions."""

    server: _Forwarder

    def handle(self) -> None:
        """See BaseRequestHandler."""
        with suppress(OSError), create_connection(self.server.behind) as far:
            back = Thread(target=_copy, args=(far, self.request), daemon=True)
            back.start()
            _copy(self.request, far)
            back.join()


def _copy(source: socket, sink: socket) -> None:
    """Pass on all bytes until the source ends."""
    with suppress(OSError):
        while data := source.recv(_BYTES):
            sink.sendall(data)
        sink.shutdown(SHUT_WR)


@attrs.frozen
class Far:
    """The cluster, with administrator rights and as helm's user, and helm's way to it."""

    _admin: Client
    _user: Client
    _door: _Forwarder
    kubeconfig: bytes
    """Helm's own."""

    def go_down(self) -> None:
        """Refuse helm's connections, as if the API server did not run."""
        self._door.open = False

    def deny_deletions(self) -> None:
        """Return once the API server denies deletions. Raises ActuatorError if it does not."""
        self._admin.patch(_ROLES, _USER, "", {"rules": _role()["rules"]})
        deadline = time.monotonic() + _DENIED_SECONDS
        while time.monotonic() < deadline:
            try:
                self._user.delete(_SECRETS, "nothing", "default")
            except Forbidden:
                return
            except NotFound:
                time.sleep(0.1)
        raise ActuatorError(
            f"the second cluster's API server let helm delete Secrets for {_DENIED_SECONDS:.0f} s "
            "after that was denied; the machine may be too busy; run the drill again"
        )

    def repair(self) -> None:
        """Open the connection, and restore helm's permissions."""
        self._admin.patch(_ROLES, _USER, "", {"rules": _role("delete")["rules"]})
        self._door.open = True

    def releases(self) -> list[Raw]:
        """Return the metadata of helm's records of the sample's releases, all revisions."""
        found = self._admin.list(_SECRETS, label_selector=f"owner=helm,{RELEASE_LABEL}")
        return [obj["metadata"] for obj in found]


def _role(*more: str) -> Raw:
    """Return the permissions that helm needs for charts of ConfigMaps; `more` verbs for these."""
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": [*_VERBS, *more]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create"]},
    ]
    return manifest(_RBAC, "ClusterRole", _USER, rules=rules)

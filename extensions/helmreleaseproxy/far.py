"""Far: the second cluster of a rehearsal, and a closable connection to it; only for drills.

Helm uses it as a user with few permissions, some of which can be revoked.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from actuator import ActuatorError, Resource
from actuator.errors import Forbidden, NotFound
from actuator.interface import Client
from actuator.meta import Raw
from extensions.helmreleaseproxy.kinds import RELEASE_LABEL
from generic.kube.client import connect
from generic.library.manifests import manifest
from generic.manager.rbac import role_binding
from generic.testing.envtest import Environment
from generic.testing.faults import FaultProxy
from generic.testing.faults.permission import Revocation, Revoked

_RBAC = "rbac.authorization.k8s.io/v1"
_ROLES = Resource(_RBAC, "clusterroles", namespaced=False)
_BINDINGS = Resource(_RBAC, "clusterrolebindings", namespaced=False)
_SECRETS = Resource("v1", "secrets")
_USER = "helm"
_DENIED_SECONDS = 20.0


@contextmanager
def far_cluster(directory: Path) -> Iterator["Far"]:
    """Run an empty embedded cluster while the context is open. `directory` is for files."""
    with Environment() as environment:
        admin = connect(environment.kubeconfig)
        admin.create(_ROLES, _role())
        admin.create(_BINDINGS, role_binding(_role(), _USER))
        kubeconfig = environment.user_kubeconfig(_USER)
        with FaultProxy(kubeconfig, directory) as way:
            denial = Revocation(admin, _USER, Revoked(verbs=["delete"]))
            yield Far(admin, connect(kubeconfig), way, denial)


@attrs.frozen
class Far:
    """The cluster, with administrator rights and as helm's user, and the connection of helm."""

    _admin: Client
    _user: Client
    way: FaultProxy
    _denial: Revocation

    def deny_deletions(self) -> None:
        """Return once the API server denies deletions. Raises ActuatorError if it does not."""
        self._denial.take()
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

    def mend(self) -> None:
        """Open the connection, and restore helm's permissions."""
        self._denial.give_back()
        self.way.come_back()

    def releases(self) -> list[Raw]:
        """Return the metadata of helm's records of the sample's releases, all revisions."""
        found = self._admin.list(_SECRETS, label_selector=f"owner=helm,{RELEASE_LABEL}")
        return [one["metadata"] for one in found]


def _role() -> Raw:
    """Return the permissions that helm needs for charts of ConfigMaps."""
    verbs = ["get", "list", "create", "update", "patch", "delete"]
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": verbs},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create"]},
    ]
    return manifest(_RBAC, "ClusterRole", _USER, rules=rules)

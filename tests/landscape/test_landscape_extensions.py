"""An extension is removed from a real Gardener: it serves until no Shoot needs it, then it ends.

The test takes about 4 minutes on a quiet machine of two cores.
"""

from __future__ import annotations

import pytest

from actuator import Resource
from generic.kube.clusters import NAMESPACES
from generic.testing.drill.landscape.world import INSTALLATIONS
from generic.testing.landscape.gardenobjects import CORE
from generic.testing.landscape.users import is_gone, is_ready
from tests.support.cluster.harness import eventually
from tests.support.landscape.shoots import exists

pytest_plugins = ["generic.tools.landscape_fixtures"]
pytestmark = pytest.mark.timeout(1800)

REGISTRATIONS = Resource(CORE, "controllerregistrations", namespaced=False)
DEPLOYMENTS = Resource("core.gardener.cloud/v1", "controllerdeployments", namespaced=False)
LOCAL = "extension-local"
SECONDS = 600.0
REMOVE = 120.0
"""Maximum times on a busy machine."""


@pytest.fixture
def client(landscape):
    """The operator's; at the end the extension is registered again."""
    garden = landscape.landscape.garden
    yield garden.client
    for extension in landscape.installed.extensions:
        garden.apply(extension.registration)


def installation(client):
    """The name of the extension's ControllerInstallation, or ""."""
    found = [
        obj["metadata"]["name"]
        for obj in client.list(INSTALLATIONS)
        if obj["spec"]["registrationRef"]["name"] == LOCAL
    ]
    return found[0] if found else ""


def test_an_extension_whose_registration_is_deleted_serves_the_shoots_that_need_it(
    landscape, client, real_shoot
):
    alive = landscape.landscape.processes.alive
    seed = landscape.landscape.seeds[0].client
    installed = installation(client)
    namespace = f"extension-{installed}"
    assert exists(seed, NAMESPACES, namespace)
    client.delete(REGISTRATIONS, LOCAL)
    real_shoot.request("reconcile")
    assert real_shoot.wait_until(is_ready, SECONDS, print)
    assert exists(client, REGISTRATIONS, LOCAL), "a Shoot needs it"
    assert any(namespace in name for name in alive())
    real_shoot.delete()
    assert real_shoot.wait_until(is_gone, SECONDS, print)
    assert eventually(lambda: not exists(client, REGISTRATIONS, LOCAL), REMOVE)
    assert installation(client) == ""
    assert not exists(seed, NAMESPACES, namespace)
    assert not any(namespace in name for name in alive())
    client.delete(DEPLOYMENTS, LOCAL)
    assert eventually(lambda: not exists(client, DEPLOYMENTS, LOCAL))

"""docs/testing.md: its tests, and tests that fail, in one pytest run of its own on the tutorial's
extension and the cluster of the session."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "testing.md").read_text()
FILE = re.compile(r"^Create `(\S+)`:\n\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)

SAME_CLUSTER = """

@pytest.fixture(scope="session", autouse=True)
def environment():
    import os
    from contextlib import nullcontext
    from pathlib import Path
    from generic.testing.drill import seeds
    from generic.testing.envtest.access import ClusterAccess

    access = ClusterAccess(os.environ["URL"], Path(os.environ["DIRECTORY"]))
    seeds.Environment = lambda progress: nullcontext(access)
    return access
"""

OWN_SEED = """
import pytest

@pytest.fixture
def seed():
    return "rows of a database"


def test_an_author_may_have_another_seed(seed, shoot):
    assert seed == "rows of a database"
    assert shoot.orphans() == []
"""

TESTS = """
import pytest
from acme import Network
from acme_cloud import Cloud

from actuator import Actuator, NotFound, Resource
from actuator.interface import resource_of
from actuator.v1alpha1 import BackupBucket, Extension, Infrastructure
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.library import manifest
from generic.library.managedresources import ManagedResourceActuator

SECRETS = Resource("v1", "secrets")
CONFIG_MAPS = Resource("v1", "configmaps")


class Buckets(Actuator[BackupBucket]):
    def reconcile(self, ctx, obj, cluster):
        raise KeyError("bucket")

    def delete(self, ctx, obj, cluster):
        pass


class Sleeper(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster):
        status = {"asleep": cluster.hibernation_enabled, "key": obj.spec.ssh_public_key}
        obj.status.provider_status = status

    def delete(self, ctx, obj, cluster):
        ctx.secret("cloudprovider", obj.metadata.namespace)


def buckets(manager):
    manager.add(Buckets(), type="acme-buckets")


class First(Actuator[Extension]):
    finalizer = "extensions.gardener.cloud/first"

    def reconcile(self, ctx, obj, cluster):
        obj.status.provider_status = {"by": self.finalizer}

    def delete(self, ctx, obj, cluster): ...


class Second(First):
    finalizer = "extensions.gardener.cloud/second"


def both(manager):
    manager.add(First(), type="first")
    manager.add(Second(), type="second")


@pytest.mark.parametrize("of", [[both], [First, Second]])
def test_two_types_of_a_kind(shoot, manager, eventually, of):
    for one in of:
        manager(one) if one is both else manager(one(), type=one.__name__.lower())
    with pytest.raises(ValueError, match="actuators serve first, second; set type="):
        shoot.deploy(Extension)
    for type in ("first", "second"):
        made = shoot.deploy(Extension, type, type=type)
        status = eventually(lambda: shoot.ready(made).status.provider_status)
        assert status == {"by": f"extensions.gardener.cloud/{type}"}
        shoot.delete(made)
        eventually(lambda: shoot.gone(made))


FAILED = []


def test_a_failure(shoot, manager, eventually, tmp_path):
    FAILED.append(shoot.namespace)
    manager(Network(Cloud(tmp_path)))
    manager(buckets)
    bucket = shoot.deploy(BackupBucket, shoot.namespace)
    assert bucket.spec.type == "acme-buckets"
    eventually(lambda: shoot.get(bucket).status.last_error)
    (tmp_path / "revoked").touch()
    made = shoot.deploy(Infrastructure, "net")
    eventually(lambda: shoot.ready(made), timeout=0.3)


class Seeded(ManagedResourceActuator[Extension]):
    finalizer = "extensions.gardener.cloud/seeded"
    target = "seed"
    waits_until_healthy = True

    def manifests(self, ctx, obj, cluster):
        return [manifest("v1", "ConfigMap", "seeded", obj.metadata.namespace)]


def test_managed_resources_are_applied_and_collected(seed, shoot, manager, eventually):
    manager(Seeded(), type="seeded")
    made = shoot.deploy(Extension)
    eventually(lambda: shoot.ready(made))
    assert seed.client.get(CONFIG_MAPS, "seeded", shoot.namespace)
    shoot.delete(made)
    eventually(lambda: shoot.gone(made))
    with pytest.raises(NotFound):
        seed.client.get(CONFIG_MAPS, "seeded", shoot.namespace)


def left(seed, resource):
    names = ((one["metadata"]["name"], one) for one in seed.client.list(resource))
    return [one for name, one in names if name.startswith(FAILED[0])]


def test_what_the_failed_test_left_is_removed(seed):
    assert left(seed, CLUSTERS) == left(seed, resource_of(BackupBucket.KIND)) == []
    assert {one["status"]["phase"] for one in left(seed, NAMESPACES)} <= {"Terminating"}
    roles = Resource("rbac.authorization.k8s.io/v1", "clusterroles", namespaced=False)
    assert left(seed, roles) == []


def test_an_extension_without_actuators(manager, shoot_settings):
    manager(lambda manager: None)


def test_a_shoot_hibernates_and_has_credentials(seed, shoot, manager, eventually):
    manager(Sleeper(), type="sleeper")
    made = shoot.deploy(Infrastructure)
    assert made.spec.secret_ref.namespace == shoot.namespace
    eventually(lambda: shoot.ready(made))
    shoot.hibernate()
    shoot.request(made, sshPublicKey="YQ==")
    status = eventually(lambda: shoot.ready(made).status.provider_status)
    assert status == {"asleep": True, "key": "YQ=="}
    assert seed.kubeconfig.exists()
    secret = seed.client.get(SECRETS, "cloudprovider", shoot.namespace)
    assert secret["data"] == {"apiKey": "YW4tZXhhbXBsZQ=="}
    shoot.delete(made)
    error = eventually(lambda: shoot.get(made).status.last_error)
    assert "is forbidden" in error.description, "the actuator declares no permission"
"""


@pytest.fixture
def project(tmp_path) -> Path:
    """The folder of the author, with the files of both pages."""
    folder = tmp_path
    files = dict(FILE.findall((DOCS / "tutorial.md").read_text()) + FILE.findall(PAGE))
    assert PAGE.count("```python") == len(FILE.findall(PAGE)), "a block that no test executes"
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "test_more.py").write_text(TESTS)
    (folder / "test_own_seed.py").write_text(OWN_SEED)
    with (folder / "conftest.py").open("a") as conftest:
        conftest.write(SAME_CLUSTER)
    return folder


@pytest.fixture
def output(environment, project) -> str:
    """The output of the command of the page."""
    [command] = COMMANDS
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    reached = {"URL": environment.url, "DIRECTORY": str(environment.directory)}
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command), "-W", "error", "-p", "no:cacheprovider"],
        cwd=project,
        env=inherited | reached | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_tests_of_the_page_pass_and_failures_are_readable(output):
    """One test, because workers that ran parts of it would serve each other's objects."""
    assert "2 failed, 15 passed" in output, output
    assert "test_acme.py ." in output
    assert "test_network.py .." in output
    assert "test_rehearsal.py ." in output
    names_object_and_reason_and_each_error_once(output)
    assert re.search(r"ValueError: <function .*> added no actuator; pass an Actuator or", output)
    assert "shoot_settings = ShootSettings(type='acme'" in output
    assert "'apiKey'" not in output, "credentials are not printed"


def names_object_and_reason_and_each_error_once(output: str) -> None:
    key = r"shoot--test--\w+"
    told = rf"Infrastructure {key}/net is not ready: error: .*Acme refuses the credentials"
    assert re.search(rf"not true after 0\.3 s: the last call raised AssertionError: {told}", output)
    lines = [line for line in output.splitlines() if re.search(r"Z (ERROR|WARNING)", line)]
    assert len(lines) == 2, lines
    crash, refused = lines
    assert re.search(rf"failed kind=BackupBucket object={key} .*KeyError: 'bucket'", crash)
    assert 'raise KeyError("bucket")' in output
    assert re.search(rf'kind=Infrastructure object={key}/net .*error="Acme refuses the', refused)
    assert "codes=ERR_INFRA_UNAUTHENTICATED" in refused
    assert '{"' not in "".join(lines)

"""generic.testing.fixtures, as the author of an extension gets them: in a pytest run of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

CONFTEST = """
import os
from pathlib import Path
import pytest
from actuator import Resource
from generic.testing.envtest.access import Access
from generic.testing.fixtures import ShootSettings

pytest_plugins = ["generic.testing.fixtures"]

@pytest.fixture(scope="session")
def environment():  # the cluster of the outer run, because another one takes seconds
    return Access(os.environ["URL"], Path(os.environ["DIRECTORY"]))

@pytest.fixture
def shoot_settings():
    return ShootSettings(type="acme", region="here", credentials={"token": "abc"})
"""

TESTS = """
import pytest
from actuator import Actuator, ActuatorError, ErrorCode, ExternalResource, Permission, Resource
from actuator.interface import resource_of
from actuator.v1alpha1 import BackupBucket, Infrastructure
from generic.kube.clusters import CLUSTERS, NAMESPACES

SECRETS = Resource("v1", "secrets")


class Network(Actuator[Infrastructure]):
    permissions = [SECRETS.permission("get")]

    def reconcile(self, ctx, obj, cluster):
        ctx.secret(obj.spec.secret_ref.name, obj.spec.secret_ref.namespace)
        if obj.spec.provider_config:
            code = ErrorCode.ERR_INFRA_UNAUTHENTICATED
            raise ActuatorError("Acme refuses the token", codes=[code])
        asleep = cluster.hibernation_enabled
        obj.status.provider_status = {"region": obj.spec.region, "asleep": asleep}

    def delete(self, ctx, obj, cluster):
        raise ActuatorError("Acme is down", codes=[ErrorCode.ERR_INFRA_DEPENDENCIES])

    def external_resources(self, obj):
        yield ExternalResource(type="Acme::Network", id="net-1")


class Buckets(Actuator[BackupBucket]):
    def reconcile(self, ctx, obj, cluster):
        raise KeyError("bucket")

    def delete(self, ctx, obj, cluster):
        pass


def buckets(manager):
    manager.add(Buckets(), type="acme-buckets")


def test_a_life(shoot, manager, eventually):
    manager(Network())
    made = shoot.deploy(Infrastructure)
    ready = eventually(lambda: shoot.ready(made))
    assert ready.status.provider_status == {"region": "here", "asleep": False}
    shoot.hibernate()
    shoot.request(made, sshPublicKey="YQ==")
    assert eventually(lambda: shoot.ready(made).status.provider_status["asleep"])
    shoot.delete(made)
    error = eventually(lambda: shoot.get(made).status.last_error)
    assert error.codes == ["ERR_INFRA_DEPENDENCIES"]
    shoot.force_delete(made)
    eventually(lambda: shoot.gone(made))
    [orphan] = shoot.orphans()
    assert orphan.spec.resource == ExternalResource(type="Acme::Network", id="net-1")


def test_the_failure_is_readable(shoot, manager, eventually):
    manager(Network())
    manager(buckets)
    bucket = shoot.deploy(BackupBucket, shoot.namespace)
    assert bucket.spec.type == "acme-buckets"
    eventually(lambda: shoot.get(bucket).status.last_error)
    made = shoot.deploy(Infrastructure, "net", providerConfig={"kind": "Wrong"})
    eventually(lambda: shoot.ready(made), timeout=1)


def left(seed, resource):
    # of this run, which shares its cluster
    names = ((one["metadata"]["name"], one) for one in seed.client.list(resource))
    return [one for name, one in names if name.startswith("shoot--test--")]


def test_what_the_failed_test_left_is_removed(seed):
    assert left(seed, CLUSTERS) == left(seed, resource_of(BackupBucket.KIND)) == []
    assert {one["status"]["phase"] for one in left(seed, NAMESPACES)} <= {"Terminating"}


def test_an_extension_without_actuators_is_refused(manager):
    manager(lambda manager: None)


def test_a_shoot_has_credentials(seed, shoot):
    found = seed.client.get(SECRETS, "cloudprovider", shoot.namespace)
    assert found["data"] == {"token": "YWJj"}
    assert seed.kubeconfig.exists()
"""


@pytest.fixture(scope="module")
def output(environment, tmp_path_factory):
    """What pytest prints about the author's tests."""
    folder = tmp_path_factory.mktemp("author")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_acme.py").write_text(TESTS)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    reached = {"URL": environment.url, "DIRECTORY": str(environment.directory)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder)],
        cwd=folder,
        env=inherited | reached,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def test_an_extension_is_tested_from_its_first_object_to_its_orphans(output):
    assert "2 failed, 3 passed" in output, output


def test_a_failure_names_object_and_reason_and_each_error_once(output):
    key = r"shoot--test--\w+"
    told = rf"Infrastructure {key}/net is not ready: error: .*Acme refuses the token"
    assert re.search(rf"not true after 1 s: the last call raised AssertionError: {told}", output)
    lines = [line for line in output.splitlines() if re.search(r"Z (ERROR|WARNING)", line)]
    crash, refused = lines
    assert re.search(
        rf"operation failed kind=BackupBucket object={key} .*KeyError: 'bucket'", crash
    )
    assert 'raise KeyError("bucket")' in output
    assert re.search(rf'kind=Infrastructure object={key}/net .*error="Acme refuses the', refused)
    assert "codes=ERR_INFRA_UNAUTHENTICATED" in refused
    assert '{"' not in "".join(lines)


def test_an_extension_that_adds_nothing_is_refused_in_one_sentence(output):
    assert re.search(r"ValueError: <function .*> added no actuator; pass an Actuator or", output)

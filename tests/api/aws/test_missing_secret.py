"""The cloudprovider Secret goes before the Infrastructure: under a real manager, with a cloud."""

from __future__ import annotations

import pytest

from actuator import Resource
from extensions.aws import tags
from extensions.aws.infrastructure import AwsInfrastructure
from generic.kube.headers import DELETION_BLOCKED
from tests.support.aws.objects import REGION, provider_config, secret
from tests.support.cluster.harness import eventually
from tests.support.objects import builders

SECRETS = Resource("v1", "secrets")


@pytest.fixture
def network(seed, namespace, start, url, shoot_key):
    """An Infrastructure that is ready, and the manager that made it so."""
    seed.client.create(SECRETS, secret(namespace, shoot_key))
    manager = start(AwsInfrastructure(url))
    manifest = builders.infrastructure(namespace, namespace, provider_config=provider_config())
    reference = {"name": "cloudprovider", "namespace": namespace}
    manifest["spec"] |= {"region": REGION, "secretRef": reference}
    seed.create(manifest)
    eventually(seed.is_ready)
    return manager


@pytest.fixture
def vpcs(ec2, namespace):
    """The number of VPCs of the shoot."""
    [(key, value)] = tags.mark(namespace).items()
    filters = [{"Name": f"tag:{key}", "Values": [value]}]
    return lambda: len(ec2.items("describe_vpcs", "Vpcs", Filters=filters))


def test_the_process_that_knew_the_credentials_cleans_up_with_them(
    network, seed, namespace, vpcs, shoot_key
):
    assert vpcs() == 1
    seed.client.delete(SECRETS, "cloudprovider", namespace)
    seed.delete()
    eventually(seed.is_gone)
    assert vpcs() == 0
    [event] = seed.events("SecretGone")
    for credential in (shoot_key.access_key_id, shoot_key.secret_access_key):
        assert credential not in repr(seed.client.list(Resource("v1", "events"), namespace))
    assert event["type"] == "Warning"


def test_after_a_restart_the_deletion_names_the_missing_secret_and_waits_for_it(
    network, seed, namespace, vpcs, start, url, shoot_key
):
    network.stop()
    seed.client.delete(SECRETS, "cloudprovider", namespace)
    start(AwsInfrastructure(url))
    seed.delete()
    condition = eventually(lambda: _blocked(seed))
    assert (condition["status"], condition["reason"]) == ("True", "SecretMissing")
    assert f"Secret {namespace}/cloudprovider does not exist" in condition["message"]
    assert vpcs() == 1
    assert seed.events("SecretGone") == []
    seed.client.create(SECRETS, secret(namespace, shoot_key))
    eventually(seed.is_gone)
    assert vpcs() == 0


def _blocked(seed):
    conditions = seed.status().get("conditions") or []
    return next(
        (condition for condition in conditions if condition["type"] == DELETION_BLOCKED), None
    )

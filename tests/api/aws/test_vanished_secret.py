"""The cloudprovider Secret goes before the Infrastructure: under a real manager, with a cloud."""

from __future__ import annotations

import builders
import pytest
from aws_objects import REGION, provider_config, secret
from harness import eventually

from actuator import Resource
from extensions.aws import AwsInfrastructure, tags
from generic.kube.headers import DELETION_BLOCKED

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
    """How many VPCs of the shoot there are."""
    [(key, value)] = tags.mark(namespace).items()
    filters = [{"Name": f"tag:{key}", "Values": [value]}]
    return lambda: len(ec2.describe("describe_vpcs", "Vpcs", filters))


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


def test_after_a_restart_the_deletion_says_what_is_missing_and_waits_for_it(
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
    return next((one for one in conditions if one["type"] == DELETION_BLOCKED), None)

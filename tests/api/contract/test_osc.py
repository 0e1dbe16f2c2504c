"""OperatingSystemConfig: where the user data goes, and where it must not."""

from base64 import b64decode

from actuator import Provisioned
from actuator.interface import Resource
from actuator.v1alpha1 import OperatingSystemConfig
from tests.support.cluster.harness import Script, eventually
from tests.support.objects.contract import manifest, secret

SECRETS = Resource("v1", "secrets")


def test_user_data_goes_into_the_result_secret_and_nowhere_else(of, start):
    seed = of(OperatingSystemConfig)
    data = [b"#!/bin/sh\necho one"]
    script = Script(
        OperatingSystemConfig, reconcile=lambda ctx, obj, cluster: Provisioned(user_data=data[0])
    )
    start(script)
    seed.create(manifest(OperatingSystemConfig, seed.namespace))
    eventually(seed.is_ready)
    found = seed.client.get(SECRETS, "osc-result-infra", seed.namespace)
    assert b64decode(found["data"]["cloud_config"]) == data[0]
    [owner] = found["metadata"]["ownerReferences"]
    assert owner["uid"] == seed.get()["metadata"]["uid"]
    assert owner["controller"] is True
    reference = {"name": "osc-result-infra", "namespace": seed.namespace}
    assert seed.status()["cloudConfig"] == {"secretRef": reference}
    data[0] = b"#!/bin/sh\necho two"
    seed.ask("reconcile")
    eventually(
        lambda: (
            b64decode(
                seed.client.get(SECRETS, "osc-result-infra", seed.namespace)["data"]["cloud_config"]
            )
            == data[0]
        )
    )
    assert "echo" not in str(seed.get())


def test_without_user_data_there_is_no_secret(of, start):
    seed = of(OperatingSystemConfig)
    start(Script(OperatingSystemConfig, reconcile=lambda ctx, obj, cluster: Provisioned()))
    seed.create(manifest(OperatingSystemConfig, seed.namespace))
    eventually(seed.is_ready)
    assert seed.client.list(SECRETS, seed.namespace) == []
    assert "cloudConfig" not in seed.status()


def test_a_secret_of_another_owner_with_that_name_is_not_taken_over(of, start):
    seed = of(OperatingSystemConfig)
    theirs = secret(seed.namespace, "osc-result-infra")
    seed.client.create(SECRETS, theirs)
    start(
        Script(
            OperatingSystemConfig,
            reconcile=lambda ctx, obj, cluster: Provisioned(user_data=b"ours"),
        )
    )
    seed.create(manifest(OperatingSystemConfig, seed.namespace))
    eventually(lambda: "belongs to another owner" in str(seed.status().get("lastError")))
    found = seed.client.get(SECRETS, "osc-result-infra", seed.namespace)
    assert found["data"] == theirs["data"]

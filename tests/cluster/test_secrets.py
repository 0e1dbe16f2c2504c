"""SecretsManager and ShootAccess on the cluster: made once, rotated in phases, cleaned up."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from actuator.errors import ActuatorError, ConfigurationError, Invalid
from actuator.interface import Resource
from generic.secrets import (
    Authority,
    Certificate,
    RotationPhase,
    SecretsManager,
    ShootAccess,
    Usage,
    generic_kubeconfig_name,
)
from generic.secrets.config import Rotation

SECRETS = Resource("v1", "secrets")
CA = Authority(name="ca-provider")
SERVER = Certificate(name="server", authority="ca-provider", common_name="s", dns_names=["s"])
CLIENT = Certificate(name="client", authority="ca-provider", common_name="c", usage=Usage.CLIENT)
CONFIGS = [CA, SERVER, CLIENT]
ASKED = datetime(2026, 3, 1, tzinfo=UTC)
PREPARING = Rotation(phase=RotationPhase.PREPARING, initiated=ASKED)
COMPLETING = Rotation(phase=RotationPhase.COMPLETING, initiated=ASKED)
COMPLETED = Rotation(initiated=ASKED)


class Clock:
    def __init__(self):
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self):
        return self.time

    def monotonic(self):
        return self.time.timestamp()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def manager(admin, namespace, clock):
    """A new object each time, as after a restart."""

    def make(identity="provider-test"):
        return SecretsManager(admin, namespace, identity, clock)

    return make


def secret_names(client, namespace):
    return sorted(secret["metadata"]["name"] for secret in client.list(SECRETS, namespace))


def loaded(pem):
    return x509.load_pem_x509_certificate(pem)


def is_signed_by(issued, authority):
    try:
        loaded(issued.certificate).verify_directly_issued_by(loaded(authority))
    except Exception:
        return False
    return True


def test_what_is_there_is_found_again_after_a_restart(admin, namespace, manager):
    first, second = manager().ensure(CONFIGS), manager().ensure(CONFIGS)
    assert first == second
    assert secret_names(admin, namespace) == sorted(i.secret_name for i in first.values())
    assert is_signed_by(first["server"], first["ca-provider"].certificate)
    assert first["server"].bundle == first["ca-provider"].certificate


def test_secrets_are_immutable_and_labelled_as_gardeners_are(admin, namespace, manager, clock):
    issued = manager().ensure(CONFIGS)["server"]
    secret = admin.get(SECRETS, issued.secret_name, namespace)
    labels = secret["metadata"]["labels"]
    assert labels["name"] == "server"
    assert labels["managed-by"] == "secrets-manager"
    assert labels["manager-identity"] == "provider-test"
    assert labels["issued-at-time"] == str(int(clock.now().timestamp()))
    until = clock.now() + timedelta(days=365)
    assert labels["valid-until-time"] == str(int(until.timestamp()))
    assert secret["type"] == "kubernetes.io/tls"
    with pytest.raises(Invalid):
        admin.patch(SECRETS, issued.secret_name, namespace, {"data": {"tls.key": "eA=="}})


def test_rotation_trusts_both_authorities_and_then_the_new_one(admin, namespace, manager):
    before = manager().ensure(CONFIGS)
    old = before["ca-provider"].certificate
    during = manager().ensure(CONFIGS, PREPARING)
    new = during["ca-provider"].certificate
    assert new != old
    assert during["ca-provider"].bundle == during["server"].bundle == new + old
    assert is_signed_by(during["client"], new)
    assert is_signed_by(during["server"], old)
    assert during == manager().ensure(CONFIGS, PREPARING)
    completing = manager()
    after = completing.ensure(CONFIGS, COMPLETING)
    assert after["ca-provider"].certificate == new
    assert after["server"].bundle == new
    assert is_signed_by(after["server"], new)
    completing.cleanup()
    assert secret_names(admin, namespace) == sorted(i.secret_name for i in after.values())
    assert manager().ensure(CONFIGS, COMPLETED) == after


def test_what_other_configurations_made_is_untouched_by_a_rotation(admin, namespace, manager):
    access = ShootAccess(name="csi")
    access.ensure(admin, namespace)
    before = admin.get(SECRETS, access.secret_name, namespace)
    manager().ensure(CONFIGS)
    rotating = manager()
    rotating.ensure(CONFIGS, PREPARING)
    rotating.cleanup()
    assert admin.get(SECRETS, access.secret_name, namespace) == before


def test_a_certificate_is_renewed_before_it_ends_its_authority_is_not(manager, clock):
    before = manager().ensure(CONFIGS)
    clock.time += timedelta(days=290)
    assert manager().ensure(CONFIGS) == before
    clock.time += timedelta(days=3)
    after = manager().ensure(CONFIGS)
    assert after["ca-provider"] == before["ca-provider"]
    assert after["server"].secret_name != before["server"].secret_name


def test_a_changed_configuration_is_another_secret(admin, namespace, manager):
    before = manager().ensure(CONFIGS)
    other = Certificate(name="server", authority="ca-provider", common_name="s", dns_names=["t"])
    changed = manager()
    after = changed.ensure([CA, other, CLIENT])
    assert after["server"].secret_name != before["server"].secret_name
    assert after["client"] == before["client"]
    changed.cleanup()
    assert before["server"].secret_name not in secret_names(admin, namespace)


def test_cleanup_leaves_what_other_managers_made(admin, namespace, manager):
    manager("other").ensure([CA])
    manager().ensure(CONFIGS)
    left = manager("other").ensure([CA])["ca-provider"].secret_name
    manager().cleanup()
    assert secret_names(admin, namespace) == [left]


def test_keys_show_in_no_repr(manager):
    issued = manager().ensure(CONFIGS)
    assert "PRIVATE" not in repr(issued)
    assert b"PRIVATE" in issued["server"].key


def test_a_certificate_without_its_authority_is_named(manager):
    with pytest.raises(ConfigurationError, match="certificate server: there is no authority"):
        manager().ensure([SERVER])


def test_access_is_asked_for_and_its_token_stays(admin, namespace):
    access = ShootAccess(name="csi", token_expiration="24h")
    access.ensure(admin, namespace)
    token = {"data": {"token": base64.b64encode(b"t").decode()}}
    admin.patch(SECRETS, "shoot-access-csi", namespace, token)
    access.ensure(admin, namespace)
    secret = admin.get(SECRETS, "shoot-access-csi", namespace)
    assert secret["data"] == token["data"]
    assert secret["metadata"]["labels"] == {
        "resources.gardener.cloud/purpose": "token-requestor",
        "resources.gardener.cloud/class": "shoot",
    }
    assert secret["metadata"]["annotations"] == {
        "serviceaccount.resources.gardener.cloud/name": "csi",
        "serviceaccount.resources.gardener.cloud/namespace": "kube-system",
        "serviceaccount.resources.gardener.cloud/token-expiration-duration": "24h",
    }
    access.delete(admin, namespace)
    access.delete(admin, namespace)
    assert secret_names(admin, namespace) == []


def test_somebody_elses_secret_is_no_access(admin, namespace):
    meta = {"name": "shoot-access-csi", "namespace": namespace}
    admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    with pytest.raises(ActuatorError, match="belongs to somebody else"):
        ShootAccess(name="csi").ensure(admin, namespace)
    ShootAccess(name="csi").delete(admin, namespace)
    assert secret_names(admin, namespace) == ["shoot-access-csi"]


def test_the_kubeconfig_is_the_one_that_the_cluster_names(namespace):
    from actuator.codec import decode
    from actuator.v1alpha1 import Cluster

    key = "generic-token-kubeconfig.secret.gardener.cloud/name"
    meta = {"name": namespace, "annotations": {key: "generic-token-kubeconfig-1"}}
    assert generic_kubeconfig_name(decode(Cluster, {"metadata": meta})) == (
        "generic-token-kubeconfig-1"
    )
    assert generic_kubeconfig_name(Cluster()) == "generic-token-kubeconfig"

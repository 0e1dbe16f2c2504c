"""SecretsManager and ShootAccess on the cluster: made once, rotated in phases, cleaned up."""

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import attrs
import pytest

from actuator.codec import decode
from actuator.errors import ActuatorError, ApiError, ConfigurationError, Invalid, RequeueAfter
from actuator.v1alpha1 import Cluster, ControlPlane
from generic.library.controlplane import GenericControlPlane
from generic.library.managedresources import ManagedResource
from generic.library.secrets import (
    PERMISSIONS,
    Authority,
    Certificate,
    SecretsManager,
    ShootAccess,
    generic_kubeconfig_name,
    rotation_of,
)
from generic.testing.seed import install
from tests.support.cluster.harness import PATIENCE, eventually
from tests.support.objects.builders import API
from tests.support.objects.builders import cluster as cluster_manifest
from tests.support.objects.issued_secrets import (
    CA,
    CLIENT,
    COMPLETING,
    CONFIGS,
    PREPARING,
    SECRETS,
    SERVER,
    Clock,
    in_phase,
    is_signed_by,
    leave_as_go_does,
    names_of,
    secret_names,
)

pytestmark = pytest.mark.usefixtures("small_authorities")

PREPARED = in_phase("Prepared")
COMPLETED = in_phase("Completed")
WAITING = in_phase("WaitingForWorkersRollout")


def rotated(rotation):
    return [attrs.evolve(CA, rotation=rotation), SERVER, CLIENT]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def manager(admin, namespace, clock):
    """A new object each time, as after a restart."""

    def make(identity="provider-test"):
        return SecretsManager(admin, namespace, identity, clock)

    return make


def test_existing_secrets_are_found_again_after_a_restart(admin, namespace, manager):
    first = manager().ensure(CONFIGS)
    second = manager().ensure(CONFIGS)
    assert first == second
    assert secret_names(admin, namespace) == names_of(first)
    assert is_signed_by(first["server"], first["ca-provider"]["ca.crt"])
    assert first["server"].bundle == first["ca-provider"]["ca.crt"]


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


def test_preparing_keeps_both_authorities_and_completing_drops_the_old(admin, namespace, manager):
    before = manager().ensure(CONFIGS)
    old = before["ca-provider"]["ca.crt"]
    during = manager().ensure(rotated(PREPARING))
    new = during["ca-provider"]["ca.crt"]
    assert new != old
    assert during["ca-provider"].bundle == during["server"].bundle == new + old
    assert is_signed_by(during["client"], new)
    assert is_signed_by(during["server"], old)
    waiting = manager()
    assert during == waiting.ensure(rotated(WAITING))
    waiting.cleanup()
    assert during == manager().ensure(rotated(PREPARED)), "nodes still trust the old authority"
    completing = manager()
    after = completing.ensure(rotated(COMPLETING))
    assert after["ca-provider"]["ca.crt"] == new
    assert after["server"].bundle == new
    assert is_signed_by(after["server"], new)
    completing.cleanup()
    assert secret_names(admin, namespace) == names_of(after)
    assert manager().ensure(rotated(COMPLETED)) == after


def test_a_server_keeps_its_certificate_while_its_authority_is_prepared(manager):
    before = manager().ensure(CONFIGS)
    during = manager().ensure(rotated(PREPARING))
    assert during["server"].secret_name == before["server"].secret_name
    assert during["server"] != before["server"], "its checksum changes with the bundle"


def test_secrets_that_are_not_rotated_are_unaffected(admin, namespace, manager):
    other = [Authority(name="ca-other"), attrs.evolve(SERVER, name="other", authority="ca-other")]
    access = ShootAccess(name="csi")
    access.ensure(admin, namespace)
    asked = admin.get(SECRETS, access.secret_name, namespace)
    before = manager().ensure([*CONFIGS, *other])
    for rotation in (PREPARING, COMPLETING, COMPLETED):
        rotating = manager()
        after = rotating.ensure([*rotated(rotation), *other])
        rotating.cleanup()
        assert [after[name] for name in ("ca-other", "other")] == [
            before[name] for name in ("ca-other", "other")
        ]
    assert admin.get(SECRETS, access.secret_name, namespace) == asked


def test_a_shoot_that_was_rotated_long_ago_is_not_rotated_again(manager):
    first = manager().ensure(rotated(COMPLETED))
    assert manager().ensure(rotated(COMPLETED)) == first


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


def test_cleanup_keeps_secrets_of_other_managers(admin, namespace, manager):
    manager("other").ensure([CA])
    manager().ensure(CONFIGS)
    left = manager("other").ensure([CA])
    manager().cleanup()
    assert secret_names(admin, namespace) == names_of(left)


def test_a_manager_that_was_asked_for_nothing_deletes_all_that_it_made(admin, namespace, manager):
    manager().ensure(CONFIGS)
    manager().cleanup()
    manager().cleanup()
    assert secret_names(admin, namespace) == []


def test_keys_show_in_no_repr(manager):
    issued = manager().ensure(CONFIGS)
    assert "PRIVATE" not in repr(issued)
    assert b"PRIVATE" in issued["server"]["tls.key"]


def test_as_a_mapping_it_is_the_secrets_data_and_the_bundle(admin, namespace, manager):
    for name, files in (("server", {"tls.crt", "tls.key"}), ("ca-provider", {"ca.crt", "ca.key"})):
        issued = manager().ensure(CONFIGS)[name]
        data = admin.get(SECRETS, issued.secret_name, namespace)["data"]
        assert data.keys() == files
        assert {file: base64.b64encode(issued[file]).decode() for file in files} == data
        assert issued.keys() - files == {"bundle.crt"}
        assert issued["bundle.crt"] == issued.bundle


def test_authorities_are_taken_along_to_another_seed_certificates_are_made_anew(
    admin, namespace, manager
):
    """Gardener copies Secrets labelled persist=true, with all labels, in a ShootState."""
    manager().ensure(CONFIGS)
    persisted = admin.list(SECRETS, namespace, label_selector="persist=true")
    assert [secret["metadata"]["labels"]["name"] for secret in persisted] == ["ca-provider"]
    manager().cleanup()
    for secret in persisted:
        meta = {key: secret["metadata"][key] for key in ("name", "namespace", "labels")}
        admin.create(SECRETS, {**secret, "metadata": meta, "type": "Opaque"})
    restored = manager().ensure(CONFIGS)
    [authority] = persisted
    assert restored["ca-provider"].secret_name == authority["metadata"]["name"]
    assert is_signed_by(restored["server"], restored["ca-provider"]["ca.crt"])


def test_a_lost_answer_costs_another_look_and_no_second_secret(admin, namespace, clock):
    class Losing:
        """The API server did it; the answer never arrives."""

        lost = 0

        def __getattr__(self, name):
            return getattr(admin, name)

        def create(self, resource, obj):
            created = admin.create(resource, obj)
            if self.lost < 4:
                self.lost += 1
                raise ApiError(0, "connection reset")
            return created

    client = Losing()
    manager = SecretsManager(client, namespace, "provider-test", clock)
    for _ in range(4):
        with pytest.raises(ApiError):
            manager.ensure(CONFIGS)
        clock.time += timedelta(seconds=5)
    issued = manager.ensure(CONFIGS)
    assert secret_names(admin, namespace) == names_of(issued)
    assert is_signed_by(issued["server"], issued["ca-provider"]["ca.crt"])


@pytest.mark.parametrize("apart", [0, 1], ids=["at the same time", "a second apart"])
def test_managers_that_ensure_at_once_end_with_one_secret_each(admin, namespace, apart):
    start = threading.Barrier(4)

    def ensure(number):
        clock = Clock()
        clock.time += timedelta(seconds=apart * number)
        manager = SecretsManager(admin, namespace, "provider-test", clock)
        start.wait(PATIENCE)
        for _ in range(20):
            try:
                return manager.ensure(CONFIGS)
            except RequeueAfter:
                clock.time += timedelta(seconds=1)
        raise AssertionError("never done")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ensure, range(4)))
    last = SecretsManager(admin, namespace, "provider-test", Clock())
    issued = last.ensure(CONFIGS)
    last.cleanup()
    assert secret_names(admin, namespace) == names_of(issued)
    assert is_signed_by(issued["server"], issued["ca-provider"]["ca.crt"])
    assert is_signed_by(issued["client"], issued["ca-provider"]["ca.crt"])


def test_a_secret_that_is_going_is_not_relied_upon(admin, namespace, manager, clock):
    before = manager().ensure([CA])["ca-provider"].secret_name
    admin.patch(SECRETS, before, namespace, {"metadata": {"finalizers": ["example.org/held"]}})
    admin.delete(SECRETS, before, namespace)
    clock.time += timedelta(seconds=1)
    assert manager().ensure([CA])["ca-provider"].secret_name != before
    admin.patch(SECRETS, before, namespace, {"metadata": {"finalizers": None}})


def test_an_authority_of_gardeners_own_secrets_manager_is_used_until_the_next_rotation(
    admin, namespace, manager
):
    before = manager().ensure(CONFIGS)
    names = {
        name: leave_as_go_does(admin, namespace, before[name], name)
        for name in ("ca-provider", "server", "client")
    }
    taking_over = manager()
    after = taking_over.ensure(CONFIGS)
    taking_over.cleanup()
    authority = after["ca-provider"]
    assert authority.secret_name == names["ca-provider"], "Go finds it again by its name"
    assert authority["ca.crt"] == before["ca-provider"]["ca.crt"]
    assert is_signed_by(after["server"], authority["ca.crt"])
    assert secret_names(admin, namespace) == names_of(after)
    rotating = manager().ensure(rotated(PREPARING))
    assert rotating["ca-provider"].secret_name != authority.secret_name
    assert rotating["server"].bundle == rotating["ca-provider"]["ca.crt"] + authority["ca.crt"]


class Certified(GenericControlPlane):
    """A control plane whose seed part serves with a certificate."""

    permissions = (*GenericControlPlane.permissions, *PERMISSIONS)

    def __init__(self):
        self.mounted = None

    def secrets_manager(self, ctx, control_plane):
        namespace = control_plane.metadata.namespace
        return SecretsManager(ctx.client, namespace, "provider-test", ctx.clock)

    def secret_configs(self, control_plane, cluster):
        return [attrs.evolve(CA, rotation=rotation_of(cluster)), SERVER]

    def seed(self, at):
        assert at.checksum("server")
        self.mounted = at.secrets["server"].secret_name
        return []


def test_a_control_plane_has_its_certificates_and_leaves_none(admin, environment, seed, start):
    install(environment, [ManagedResource])
    cp = seed.of(ControlPlane, "cp")
    actuator = Certified()
    start(actuator)
    spec = {"type": cp.namespace, "region": "eu-1", "secretRef": {"name": "cloudprovider"}}
    meta = {"name": "cp", "namespace": cp.namespace}
    cp.create({"apiVersion": API, "kind": "ControlPlane", "metadata": meta, "spec": spec})
    eventually(cp.is_ready)
    made = admin.list(SECRETS, cp.namespace, label_selector="managed-by=secrets-manager")
    assert len(made) == 3, "the authority, its bundle, and the certificate"
    first = actuator.mounted
    assert first in {secret["metadata"]["name"] for secret in made}
    for phase in ("Preparing", "Completing"):
        cp.update_cluster(cluster_in(cp.namespace, phase))
        cp.ask("reconcile")
        eventually(cp.is_ready)
    assert actuator.mounted != first
    left = admin.list(SECRETS, cp.namespace, label_selector="managed-by=secrets-manager")
    assert len(left) == 3
    cp.delete()
    eventually(cp.is_gone)
    assert not admin.list(SECRETS, cp.namespace)


def cluster_in(namespace, phase):
    manifest = cluster_manifest(namespace)
    told = {"phase": phase, "lastInitiationTime": "2026-03-01T00:00:00Z"}
    rotation = {"rotation": {"certificateAuthorities": told}}
    manifest["spec"]["shoot"]["status"]["credentials"] = rotation
    return manifest


def test_a_certificate_without_its_authority_is_named(manager):
    with pytest.raises(
        ConfigurationError, match="certificate server: authority 'ca-provider' not found"
    ):
        manager().ensure([SERVER])


def test_access_is_asked_for_and_its_token_stays(admin, namespace):
    access = ShootAccess(name="csi")
    access.ensure(admin, namespace)
    token = {"data": {"token": base64.b64encode(b"t").decode()}}
    admin.patch(SECRETS, "shoot-access-csi", namespace, token)
    before = admin.get(SECRETS, "shoot-access-csi", namespace)
    access.ensure(admin, namespace)
    secret = admin.get(SECRETS, "shoot-access-csi", namespace)
    assert secret == before
    assert secret["data"] == token["data"]
    assert secret["metadata"]["labels"] == {
        "resources.gardener.cloud/purpose": "token-requestor",
        "resources.gardener.cloud/class": "shoot",
    }
    assert secret["metadata"]["annotations"] == {
        "serviceaccount.resources.gardener.cloud/name": "csi",
        "serviceaccount.resources.gardener.cloud/namespace": "kube-system",
    }
    access.delete(admin, namespace)
    access.delete(admin, namespace)
    assert secret_names(admin, namespace) == []


def test_a_secret_of_another_owner_is_no_access(admin, namespace):
    meta = {"name": "shoot-access-csi", "namespace": namespace}
    admin.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    with pytest.raises(ActuatorError, match="requests no token, so it belongs to another owner"):
        ShootAccess(name="csi").ensure(admin, namespace)
    ShootAccess(name="csi").delete(admin, namespace)
    assert secret_names(admin, namespace) == ["shoot-access-csi"]


def test_the_kubeconfig_is_the_one_that_the_cluster_names(namespace):
    key = "generic-token-kubeconfig.secret.gardener.cloud/name"
    meta = {"name": namespace, "annotations": {key: "generic-token-kubeconfig-1"}}
    assert generic_kubeconfig_name(decode(Cluster, {"metadata": meta})) == (
        "generic-token-kubeconfig-1"
    )
    assert generic_kubeconfig_name(Cluster()) == "generic-token-kubeconfig"

"""Passwords, RSA keys and tokens of a SecretsManager on the cluster; and one for the garden."""

from __future__ import annotations

import base64
import csv
import hashlib
from datetime import timedelta

import attrs
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from actuator.codec import decode
from actuator.errors import ConfigurationError
from actuator.interface import Resource
from actuator.v1alpha1 import Cluster
from generic.library.secrets import (
    BasicAuth,
    RsaKey,
    SecretRotation,
    SecretsManager,
    StaticTokens,
    TokenUser,
    rotation_of,
)
from tests.support.objects.issued_secrets import (
    ASKED,
    CA,
    COMPLETING,
    CONFIGS,
    PREPARING,
    SECRETS,
    Clock,
    is_signed_by,
    leave_as_go_does,
    names_of,
    secret_names,
)
from tests.support.pages.documented import run_examples

pytestmark = pytest.mark.usefixtures("small_authorities")

PASSWORD = BasicAuth(name="ingress", username="operator")
SIGNING = RsaKey(name="signing", bits=2048)
SSH = RsaKey(name="ssh", bits=2048, for_ssh=True)
TOKENS = StaticTokens(
    name="tokens", users=[TokenUser("prober"), TokenUser("viewer", "7", ["readers", "a,b"])]
)
GENERATED = [PASSWORD, SIGNING, SSH, TOKENS]
MONTH = timedelta(days=30)


def rotated(rotation):
    return [attrs.evolve(item, rotation=rotation) for item in GENERATED]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def manager(admin, namespace, clock):
    """A new object each time, as after a restart."""

    def make():
        return SecretsManager(admin, namespace, "provider-test", clock)

    return make


@pytest.fixture
def garden(admin, namespace):
    """A namespace of the garden."""
    name = f"{namespace}-garden"
    meta = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    admin.create(Resource("v1", "namespaces", namespaced=False), meta)
    return name


def data_of(admin, namespace, issued):
    found = admin.get(SECRETS, issued.secret_name, namespace)["data"]
    return {name: base64.b64decode(value) for name, value in found.items()}


def test_basic_auth_has_the_data_that_gardeners_servers_and_clients_read(admin, namespace, manager):
    data = data_of(admin, namespace, manager().ensure(GENERATED)["ingress"])
    assert data.keys() == {"username", "password", "auth"}
    assert data["username"] == b"operator"
    assert len(data["password"]) == 32
    hashed = base64.b64encode(hashlib.sha1(data["password"]).digest())
    assert data["auth"] == b"operator:{SHA}" + hashed


def test_rsa_keys_are_pem_of_pkcs_1_and_for_ssh_a_public_line(admin, namespace, manager):
    made = manager().ensure(GENERATED)
    assert data_of(admin, namespace, made["signing"]).keys() == {"id_rsa"}
    data = data_of(admin, namespace, made["ssh"])
    assert data.keys() == {"id_rsa", "id_rsa.pub"}
    assert data["id_rsa"].startswith(b"-----BEGIN RSA PRIVATE KEY-----\n")
    key = serialization.load_pem_private_key(data["id_rsa"], password=None)
    public = serialization.load_ssh_public_key(data["id_rsa.pub"])
    assert key.public_key() == public
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048
    assert not data["id_rsa.pub"].endswith(b"\n")


def test_static_tokens_are_a_table_as_kube_apiserver_reads_it(admin, namespace, manager):
    data = data_of(admin, namespace, manager().ensure(GENERATED)["tokens"])
    assert data.keys() == {"static_tokens.csv"}
    lines = data["static_tokens.csv"].decode().split("\n")
    rows = list(csv.reader(lines))
    assert [row[1:] for row in rows] == [["prober", "", ""], ["viewer", "7", "readers,a,b"]]
    assert lines[1].endswith(',viewer,7,"readers,a,b"')
    assert [len(row[0]) for row in rows] == [128, 128]
    assert len({row[0] for row in rows}) == 2


def test_they_are_found_again_after_a_restart_and_persist(admin, namespace, manager):
    made = manager().ensure(GENERATED)
    again = manager()
    assert again.ensure(GENERATED) == made
    again.cleanup()
    assert secret_names(admin, namespace) == names_of(made)
    for item in made.values():
        secret = admin.get(SECRETS, item.secret_name, namespace)
        labels = secret["metadata"]["labels"]
        assert (secret["type"], secret["immutable"]) == ("Opaque", True)
        assert (labels["managed-by"], labels["persist"]) == ("secrets-manager", "true")
        assert "valid-until-time" not in labels, "it does not end"


def test_a_rotation_keeps_the_old_ones_until_it_completes(admin, namespace, manager):
    before = manager().ensure(GENERATED)
    preparing = manager()
    during = preparing.ensure(rotated(PREPARING))
    preparing.cleanup()
    assert {name: item.old for name, item in during.items()} == {
        name: item.kept.data for name, item in before.items()
    }
    assert all(during[name].secret_name != before[name].secret_name for name in before)
    assert during["signing"]["bundle.key"] == (
        during["signing"]["id_rsa"] + before["signing"]["id_rsa"]
    )
    assert during["ssh"].keys() == {"id_rsa", "id_rsa.pub"}
    assert len(secret_names(admin, namespace)) == 2 * len(GENERATED) + 1, "one bundle"
    completing = manager()
    after = completing.ensure(rotated(COMPLETING))
    completing.cleanup()
    assert names_of(after) == secret_names(admin, namespace)
    assert [item.secret_name for item in after.values()] == [
        item.secret_name for item in during.values()
    ]
    assert [item.old for item in after.values()] == [None] * len(GENERATED)
    assert after["signing"].bundle == after["signing"]["id_rsa"]


def test_a_rotation_of_one_step_keeps_nothing(manager):
    before = manager().ensure([PASSWORD])["ingress"]
    rotation = SecretRotation(keeps_old=False, initiated=ASKED)
    after = manager().ensure([attrs.evolve(PASSWORD, rotation=rotation)])["ingress"]
    assert after["password"] != before["password"]
    assert after.old is None


def test_a_shoot_rotates_each_of_its_credentials_by_itself():
    told = {"serviceAccountKey": {"phase": "Preparing", "lastInitiationTime": f"{ASKED:%FT%TZ}"}}
    status = {"credentials": {"rotation": told}}
    cluster = decode(Cluster, {"spec": {"shoot": {"status": status}}})
    assert rotation_of(cluster, "serviceAccountKey") == PREPARING
    assert rotation_of(cluster) == SecretRotation()


@pytest.mark.parametrize(
    "config",
    [*(attrs.evolve(item, validity=MONTH) for item in GENERATED), CA],
    ids=lambda c: c.name,
)
def test_one_that_grew_old_is_kept_for_a_day_beside_its_successor(
    admin, namespace, manager, clock, config
):
    before = manager().ensure([config])[config.name]
    until = before.kept.valid_until
    clock.time = before.kept.issued + 0.6 * (until - before.kept.issued)
    assert manager().ensure([config])[config.name] == before
    clock.time = before.kept.issued + 0.85 * (until - before.kept.issued)
    after = manager().ensure([config])[config.name]
    assert after.secret_name != before.secret_name
    clock.time += timedelta(hours=23)
    renewing = manager()
    during = renewing.ensure([config])
    assert during[config.name].trusted[1].secret_name == before.secret_name
    renewing.cleanup()
    assert secret_names(admin, namespace) == sorted([before.secret_name, *names_of(during)])
    clock.time += timedelta(hours=2)
    later = manager()
    ended = later.ensure([config])
    assert ended[config.name].old is None
    later.cleanup()
    assert after.secret_name in secret_names(admin, namespace) == names_of(ended)


def test_clients_trust_a_renewed_authority_before_servers_use_it(manager, clock):
    before = manager().ensure(CONFIGS)["ca-provider"]
    clock.time += timedelta(days=0.85 * 3650)
    during = manager().ensure(CONFIGS)
    assert during["server"].bundle == during["ca-provider"]["ca.crt"] + before["ca.crt"]
    assert is_signed_by(during["server"], before["ca.crt"])
    clock.time += timedelta(days=1)
    after = manager().ensure(CONFIGS)
    assert after["server"].bundle == during["ca-provider"]["ca.crt"]
    assert is_signed_by(after["server"], during["ca-provider"]["ca.crt"])


def test_one_that_ended_is_not_kept(manager, clock):
    config = attrs.evolve(PASSWORD, validity=MONTH)
    manager().ensure([config])
    clock.time += 2 * MONTH
    assert manager().ensure([config])["ingress"].old is None


def test_secrets_of_gardeners_secrets_manager_are_used_until_the_next_rotation(
    admin, namespace, manager
):
    before = manager().ensure(GENERATED)
    names = {name: leave_as_go_does(admin, namespace, item, name) for name, item in before.items()}
    after = manager().ensure(GENERATED)
    assert {name: item.secret_name for name, item in after.items()} == names
    assert after == before
    assert {
        item.trusted[1].secret_name for item in manager().ensure(rotated(PREPARING)).values()
    } == set(names.values())


def test_a_manager_in_the_garden_neither_sees_nor_persists_those_of_the_seed(
    admin, namespace, garden, manager, clock
):
    def in_garden():
        return SecretsManager(admin, garden, "provider-test", clock, persist=False)

    in_seed = manager().ensure(GENERATED)
    made = in_garden().ensure([*GENERATED, *CONFIGS])
    assert all(made[name] != item for name, item in in_seed.items())
    assert admin.list(SECRETS, garden, label_selector="persist") == []
    selector = "managed-by=secrets-manager,manager-identity=provider-test"
    assert len(admin.list(SECRETS, garden, label_selector=selector)) == len(names_of(made))
    assert in_garden().ensure([*GENERATED, *CONFIGS]) == made
    in_garden().cleanup()
    assert secret_names(admin, garden) == []
    assert secret_names(admin, namespace) == names_of(in_seed)


def test_no_credential_shows_in_a_repr(manager):
    made = manager().ensure(GENERATED)
    text = repr(made)
    for item in made.values():
        for name, value in item.items():
            assert name == "username" or repr(value)[2:40] not in text


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (attrs.evolve(PASSWORD, username="a:b"), "basic auth ingress: use a username without ':'"),
        (attrs.evolve(PASSWORD, length=8), "basic auth ingress: .* a length of at least 16"),
        (attrs.evolve(SIGNING, bits=1024), "RSA key signing: use at least 2048 bits"),
    ],
)
def test_a_weak_credential_is_refused(manager, config, message):
    with pytest.raises(ConfigurationError, match=message):
        manager().ensure([config])


def test_the_examples_of_the_documentation_run(admin, namespace, garden, clock):
    found = run_examples("### Generated credentials")
    name, password = found["credentials"](admin, namespace, clock)
    assert name in secret_names(admin, namespace)
    assert len(password) == 32
    made = found["garden_credentials"](admin, garden, clock)
    assert secret_names(admin, garden) == names_of(made)

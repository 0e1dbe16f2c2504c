"""Secrets without a cluster: phases, checksums, certificates, the pool hash and shares of zones."""

import hashlib
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.x509 import verification

from actuator.codec import decode
from actuator.errors import ConfigurationError
from actuator.v1alpha1 import Cluster, WorkerPool
from generic.secrets import Authority, Certificate, RotationPhase, Usage, rotation_of
from generic.secrets.certificates import new_authority, sign, validity
from generic.secrets.config import checksum_of
from generic.worker import hash_of, pool_hash, share_of_zone

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CA = Authority(name="ca-provider")
SERVER = Certificate(
    name="webhook",
    authority="ca-provider",
    common_name="webhook",
    organizations=["provider"],
    dns_names=["webhook", "webhook.shoot"],
    addresses=["10.0.0.1"],
)


def shoot(**told):
    status = {"credentials": {"rotation": {"certificateAuthorities": told}}}
    return decode(Cluster, {"spec": {"shoot": {"status": status}}})


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Preparing", RotationPhase.PREPARING),
        ("PreparingWithoutWorkersRollout", RotationPhase.PREPARING),
        ("Prepared", RotationPhase.PREPARED),
        ("Completing", RotationPhase.COMPLETING),
        ("Completed", RotationPhase.NONE),
        ("", RotationPhase.NONE),
    ],
)
def test_the_shoots_status_says_where_a_rotation_stands(phase, expected):
    rotation = rotation_of(shoot(phase=phase, lastInitiationTime="2026-01-01T00:00:00Z"))
    assert rotation.phase == expected
    assert rotation.stamp == str(int(NOW.timestamp()))


def test_a_shoot_that_was_never_rotated_has_no_rotation():
    rotation = rotation_of(Cluster())
    assert (rotation.phase, rotation.stamp) == (RotationPhase.NONE, "")


def test_a_checksum_changes_with_the_configuration_alone():
    same = Certificate(name="a", authority="ca", common_name="a", dns_names=["x"])
    other = Certificate(name="a", authority="ca", common_name="a", dns_names=["y"])
    assert checksum_of(same) == checksum_of(
        Certificate(name="a", authority="ca", common_name="a", dns_names=("x",))
    )
    assert checksum_of(same) != checksum_of(other)
    assert checksum_of(same) != checksum_of(same, "another authority")


def test_a_certificate_says_what_it_was_asked_to():
    authority = new_authority(CA, "ca-provider-1", NOW)
    loaded = x509.load_pem_x509_certificate(sign(SERVER, authority, NOW).certificate)
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    loaded.verify_directly_issued_by(issuer)
    assert loaded.subject.rfc4514_string() == "CN=webhook,O=provider"
    names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["webhook", "webhook.shoot"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]
    usage = loaded.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]
    assert issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def verifiers(authority, when):
    store = verification.Store([x509.load_pem_x509_certificate(authority.certificate)])
    return verification.PolicyBuilder().store(store).time(when)


def test_a_server_verifies_under_its_names_while_it_is_valid_and_as_no_client():
    authority = new_authority(CA, "ca-provider-1", NOW)
    server = x509.load_pem_x509_certificate(sign(SERVER, authority, NOW).certificate)
    for name in (x509.DNSName("webhook.shoot"), x509.IPAddress(ip_address("10.0.0.1"))):
        verifiers(authority, NOW).build_server_verifier(name).verify(server, [])
    with pytest.raises(verification.VerificationError):
        verifiers(authority, NOW).build_server_verifier(x509.DNSName("other")).verify(server, [])
    later = NOW + timedelta(days=366)
    verifier = verifiers(authority, later).build_server_verifier(x509.DNSName("webhook"))
    with pytest.raises(verification.VerificationError):
        verifier.verify(server, [])
    with pytest.raises(verification.VerificationError):
        verifiers(authority, NOW).build_client_verifier().verify(server, [])


def test_another_authority_verifies_nothing():
    server = sign(SERVER, new_authority(CA, "ca-provider-1", NOW), NOW)
    other = new_authority(CA, "ca-provider-1", NOW)
    verifier = verifiers(other, NOW).build_server_verifier(x509.DNSName("webhook"))
    with pytest.raises(verification.VerificationError):
        verifier.verify(x509.load_pem_x509_certificate(server.certificate), [])


def test_a_certificate_is_not_valid_longer_than_its_authority():
    authority = new_authority(Authority(name="ca", validity=timedelta(days=5)), "ca", NOW)
    assert validity(sign(SERVER, authority, NOW).certificate)[1] == NOW + timedelta(days=5)


def test_an_address_that_is_none_is_named():
    odd = Certificate(name="odd", authority="ca", common_name="odd", addresses=["nonsense"])
    with pytest.raises(ConfigurationError, match="certificate odd: addresses: 'nonsense'"):
        sign(odd, new_authority(CA, "ca", NOW), NOW)


def test_a_key_shows_in_no_repr():
    pair = new_authority(CA, "ca", NOW)
    assert "PRIVATE" not in repr(pair)
    assert Usage.BOTH == "both"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def pool(**more):
    given = {"name": "p", "machineType": "small", "machineImage": {"name": "os", "version": "1"}}
    return decode(WorkerPool, given | more)


def test_the_pool_hash_is_that_of_gardeners_library():
    assert hash_of(["a", "b"]) == sha256(sha256("a") + sha256("b"))[:5]
    assert pool_hash(pool(nodeAgentSecretName="agent"), Cluster()) == hash_of(["agent"])
    named = pool_hash(
        pool(nodeAgentSecretName="agent"),
        Cluster(),
        additional=["ignored"],
        additional_with_node_agent=["x"],
    )
    assert named == hash_of(["agent", "x"])


def test_without_a_node_agent_the_pool_hash_is_of_all_that_makes_a_machine():
    spec = {
        "kubernetes": {"version": "1.31.2"},
        "provider": {"workers": [{"name": "p", "cri": {"name": "containerd"}}]},
        "systemComponents": {"nodeLocalDNS": {"enabled": True}},
    }
    rotation = {
        "certificateAuthorities": {"lastInitiationTime": "2026-01-01T00:00:00Z"},
        "serviceAccountKey": {
            "lastInitiationTime": "2026-02-01T00:00:00Z",
            "pendingWorkersRollouts": [{"name": "p", "lastInitiationTime": "2025-01-01T00:00:00Z"}],
        },
    }
    status = {"credentials": {"rotation": rotation}}
    cluster = decode(Cluster, {"spec": {"shoot": {"spec": spec, "status": status}}})
    volume = {"type": "fast", "size": "50Gi"}
    found = pool_hash(
        pool(volume=volume, providerConfig={"b": "<", "a": 1}), cluster, additional=["more"]
    )
    config = '{"a":1,"b":"\\u003c"}'
    moments = ["2026-01-01 00:00:00 +0000 UTC", "2025-01-01 00:00:00 +0000 UTC"]
    machine = ["1.31", "small", "os1", "50Gi", "fast", config, "more"]
    assert found == hash_of([*machine, "containerd", *moments, "node-local-dns"])


def test_a_pool_without_a_kubernetes_version_is_named():
    with pytest.raises(ConfigurationError, match="pool p: '' is no Kubernetes version"):
        pool_hash(pool(), Cluster())


def test_zones_share_a_number_and_the_first_get_what_is_left():
    assert [share_of_zone(5, index, 3, 5) for index in range(3)] == [2, 2, 1]
    assert [share_of_zone("10%", index, 2, 4) for index in range(2)] == ["10%", "10%"]
    assert [share_of_zone("25%", index, 2, 3) for index in range(2)] == ["34%", "17%"]

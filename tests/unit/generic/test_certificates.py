"""Secrets without a cluster: phases, checksums, certificates."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.x509 import verification

from actuator.codec import decode
from actuator.errors import ConfigurationError
from actuator.v1alpha1 import Cluster
from generic.kube.certificates import KeyPair
from generic.library.secrets import Authority, Certificate, SecretRotation, Usage, rotation_of
from generic.library.secrets.config import checksum_of

pytestmark = pytest.mark.usefixtures("small_authorities")

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


def new_authority(config, secret_name, now):
    return KeyPair(*config.generate(secret_name, now).values())


def shoot(**told):
    status = {"credentials": {"rotation": {"certificateAuthorities": told}}}
    return decode(Cluster, {"spec": {"shoot": {"status": status}}})


@pytest.mark.parametrize(
    ("phase", "keeps_old"),
    [
        ("Preparing", True),
        ("PreparingWithoutWorkersRollout", True),
        ("WaitingForWorkersRollout", True),
        ("Prepared", True),
        ("Completing", False),
        ("Completed", False),
        ("AsYetUnknown", True),
        ("", True),
    ],
)
def test_the_old_credential_is_kept_until_the_rotation_is_being_completed(phase, keeps_old):
    rotation = rotation_of(shoot(phase=phase, lastInitiationTime="2026-01-01T00:00:00Z"))
    assert rotation.keeps_old is keeps_old
    assert rotation.stamp == str(int(NOW.timestamp()))


def test_a_shoot_that_was_never_rotated_has_no_rotation():
    assert rotation_of(Cluster()) == SecretRotation()


def test_a_checksum_changes_with_the_configuration_alone():
    same = Certificate(name="a", authority="ca", common_name="a", dns_names=["x"])
    other = Certificate(name="a", authority="ca", common_name="a", dns_names=["y"])
    assert checksum_of(same) == checksum_of(
        Certificate(name="a", authority="ca", common_name="a", dns_names=("x",))
    )
    assert checksum_of(same) != checksum_of(other)
    assert checksum_of(same) != checksum_of(same, "another authority")


def test_a_certificate_has_the_requested_names_and_usage():
    authority = new_authority(CA, "ca-provider-1", NOW)
    loaded = x509.load_pem_x509_certificate(SERVER.sign(authority, NOW).certificate)
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
    server = x509.load_pem_x509_certificate(SERVER.sign(authority, NOW).certificate)
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
    server = SERVER.sign(new_authority(CA, "ca-provider-1", NOW), NOW)
    other = new_authority(CA, "ca-provider-1", NOW)
    verifier = verifiers(other, NOW).build_server_verifier(x509.DNSName("webhook"))
    with pytest.raises(verification.VerificationError):
        verifier.verify(x509.load_pem_x509_certificate(server.certificate), [])


def test_a_certificate_is_not_valid_longer_than_its_authority():
    authority = new_authority(Authority(name="ca", validity=timedelta(days=5)), "ca", NOW)
    loaded = x509.load_pem_x509_certificate(SERVER.sign(authority, NOW).certificate)
    assert loaded.not_valid_after_utc == NOW + timedelta(days=5)


def test_an_authority_with_a_long_name_is_named_after_the_end_of_its_secrets_name():
    """X.509 allows 64 characters; a Secret's name has up to 253, and is unique at its end."""
    pair = new_authority(Authority(name="ca"), f"{'a' * 80}-0a1b2c3d", NOW)
    subject = x509.load_pem_x509_certificate(pair.certificate).subject.rfc4514_string()
    assert subject == f"CN={'a' * 55}-0a1b2c3d"


def test_an_address_that_is_none_is_named():
    odd = Certificate(name="odd", authority="ca", common_name="odd", addresses=["nonsense"])
    with pytest.raises(ConfigurationError, match="certificate odd: addresses: 'nonsense'"):
        odd.sign(new_authority(CA, "ca", NOW), NOW)


def test_a_key_shows_in_no_repr():
    pair = new_authority(CA, "ca", NOW)
    assert "PRIVATE" not in repr(pair)
    assert Usage("both") is Usage.BOTH

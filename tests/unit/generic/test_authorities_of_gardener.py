"""Authorities of Gardener's secrets manager are taken over, and it can read ours.

Sources: gardener, `pkg/utils/secrets` (`CertificateSecretConfig`, `LoadCertificate`),
`pkg/utils/secrets/manager` (labels, rotation, bundles), `pkg/utils/encoding.go` (formats of keys);
Go documentation, `crypto/x509` (`CreateCertificate`, `Certificate.CheckSignatureFrom`), and the
release notes of Go 1.25 (SubjectKeyId from SHA-256). A certificate counts if OpenSSL accepts it.
"""

import base64
import hashlib
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from actuator.errors import ConfigurationError
from actuator.interface import SECRETS
from generic.kube.certificates import read_key
from generic.library.secrets import Authority, Certificate, SecretRotation, SecretsManager, Usage
from generic.testing.recording import RecordingClient

NAMESPACE = "shoot--a--b"
IDENTITY = "extension-registry-cache"
NAME = "ca-extension"
CA = Authority(name=NAME, validity=timedelta(days=730))
SERVER = Certificate(name="server", authority=NAME, common_name="s", dns_names=["server.local"])
CLIENT = Certificate(name="client", authority=NAME, common_name="c", usage=Usage.CLIENT)
CONFIGS = [CA, SERVER, CLIENT]
ROTATED = datetime(2026, 3, 1, tzinfo=UTC)
STAMP = str(int(ROTATED.timestamp()))

KEYS: dict[str, Any] = {
    "rsa-3072": rsa.generate_private_key(65537, 3072),
    "p-256": ec.generate_private_key(ec.SECP256R1()),
    "p-384": ec.generate_private_key(ec.SECP384R1()),
    "p-521": ec.generate_private_key(ec.SECP521R1()),
}
CURVE = b"-----BEGIN EC PARAMETERS-----\nBgUrgQQAIg==\n-----END EC PARAMETERS-----\n"


class Clock:
    """Real time, because OpenSSL has no other; trusted at once."""

    def now(self):
        return datetime.now(UTC)

    def monotonic(self):
        return self.now().timestamp()


def block(mark, der):
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {mark}-----\n{text}-----END {mark}-----\n".encode()


def der(key, format):
    return key.private_bytes(Encoding.DER, format, NoEncryption())


def forms(key):
    """The PEM texts of a key: PKCS #1 or SEC 1, PKCS #8, and those that the mark does not tell."""
    own = der(key, PrivateFormat.TraditionalOpenSSL)
    pkcs8 = der(key, PrivateFormat.PKCS8)
    mark = "RSA PRIVATE KEY" if isinstance(key, rsa.RSAPrivateKey) else "EC PRIVATE KEY"
    return {
        "own": block(mark, own),
        "pkcs8": block("PRIVATE KEY", pkcs8),
        "pkcs8 as EncodePrivateKeyInPKCS8 marks it": block(mark, pkcs8),
        "after other blocks and text": b"key:\n" + CURVE + block(mark, own) + b"\n",
        "with other line ends": block(mark, own).replace(b"\n", b"\r\n"),
    }


IDENTIFIERS = {
    "none": lambda _: None,
    "SHA-1": lambda key: hashlib.sha1(key).digest(),
    "SHA-256, of Go 1.25": lambda key: hashlib.sha256(key).digest()[:20],
}


def go_certificate(key, subject, identifier="SHA-256, of Go 1.25"):
    """A certificate as `generateCertificateTemplate` describes an authority."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    now = datetime.now(UTC)
    usage = dict.fromkeys(
        ("content_commitment", "data_encipherment", "key_agreement"), False
    ) | dict.fromkeys(("encipher_only", "decipher_only"), False)
    usage |= dict.fromkeys(
        ("digital_signature", "key_encipherment", "key_cert_sign", "crl_sign"), True
    )
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=730))
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    point = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if digest := IDENTIFIERS[identifier](point):
        builder = builder.add_extension(x509.SubjectKeyIdentifier(digest), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def go_secret(secret_name, data, *, age=0, rotated="", **labels):
    """A Secret with the labels of Gardener's secrets manager; `age` is in days."""
    issued = datetime.now(UTC) - timedelta(days=age, minutes=1)
    labels = {
        "name": NAME,
        "managed-by": "secrets-manager",
        "manager-identity": IDENTITY,
        "checksum-of-config": "16163109178098373712",
        "last-rotation-initiation-time": rotated,
        "issued-at-time": str(int(issued.timestamp())),
        **labels,
    }
    meta = {"name": secret_name, "namespace": NAMESPACE, "labels": labels, "uid": secret_name}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded}


def go_authority(secret_name, key, *, form="own", identifier="SHA-1", **more):
    data = {"ca.crt": go_certificate(key, secret_name, identifier), "ca.key": forms(key)[form]}
    until = str(int((datetime.now(UTC) + timedelta(days=730)).timestamp()))
    return go_secret(secret_name, data, persist="true", **{"valid-until-time": until}, **more)


def go_bundle(secret_name, *authorities):
    parts = [base64.b64decode(authority["data"]["ca.crt"]) for authority in authorities]
    labels = {"name": f"{NAME}-bundle", "bundle-for": NAME}
    return go_secret(secret_name, {"bundle.crt": b"".join(parts)}, **labels)


def manage(client, configs=CONFIGS):
    manager = SecretsManager(client, NAMESPACE, IDENTITY, Clock())
    issued = manager.ensure(configs)
    manager.cleanup()
    return issued


def names(client):
    return {obj["metadata"]["name"] for obj in client.list(SECRETS, NAMESPACE)}


def openssl_accepts(issued):
    """Whether a client and a server with these certificates reach each other over TLS.

    Without a certificate of the client, the server asks for none.
    """
    with tempfile.TemporaryDirectory() as folder:
        contexts = []
        for name, side in (
            ("client", ssl.PROTOCOL_TLS_CLIENT),
            ("server", ssl.PROTOCOL_TLS_SERVER),
        ):
            context = ssl.SSLContext(side)
            context.load_verify_locations(cadata=issued["server"].bundle.decode())
            if "client" in issued:
                context.verify_mode = ssl.CERT_REQUIRED
            if name in issued:
                chain = Path(folder, name)
                chain.write_bytes(issued[name]["tls.crt"] + issued[name]["tls.key"])
                context.load_cert_chain(chain)
            contexts.append(context)
    to_server = ssl.MemoryBIO()
    to_client = ssl.MemoryBIO()
    client = contexts[0].wrap_bio(to_client, to_server, server_hostname="server.local")
    server = contexts[1].wrap_bio(to_server, to_client, server_side=True)
    for item in (client, server, client, server):
        try:
            item.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client.version() is not None and server.version() is not None


@settings(max_examples=30)
@given(
    st.sampled_from(["p-256", "p-384", "p-521", "rsa-3072"]),  # reading RSA takes longest
    st.sampled_from(list(forms(KEYS["p-256"]))),
    st.sampled_from(list(IDENTIFIERS)),
    st.sampled_from(["", STAMP]),
)
def test_law_an_authority_is_used_in_every_form_and_openssl_accepts_its_certificates(
    key, form, identifier, rotated
):
    theirs = go_authority(
        "ca-extension-1", KEYS[key], form=form, identifier=identifier, rotated=rotated
    )
    client = RecordingClient(theirs)
    issued = manage(client, [CA, SERVER])
    assert issued[NAME].secret_name == "ca-extension-1", "no second authority"
    assert base64.b64encode(issued["server"].bundle).decode() == theirs["data"]["ca.crt"]
    assert openssl_accepts(issued)
    assert len(names(client)) == 3, "the authority, its bundle, and the certificate"


@pytest.mark.parametrize("key", KEYS)
def test_each_form_of_a_key_is_the_same_key(key):
    texts = forms(KEYS[key])
    assert len(texts) > 1
    for text in texts.values():
        assert read_key(text).private_numbers() == KEYS[key].private_numbers()


OLD = go_authority("ca-extension-1", KEYS["rsa-3072"], age=30)
NEW = go_authority("ca-extension-2", KEYS["p-256"], rotated=STAMP)
BOTH = go_bundle("ca-bundle-1", NEW, OLD)
ONLY = go_bundle("ca-bundle-2", NEW)
PHASES = {
    "before any rotation": ([OLD], SecretRotation(), ["ca-extension-1"], "ca-extension-1"),
    "preparing": (
        [OLD, NEW, BOTH],
        SecretRotation(initiated=ROTATED),
        ["ca-extension-2", "ca-extension-1"],
        "ca-extension-1",
    ),
    "completing": (
        [OLD, NEW, BOTH, ONLY],
        SecretRotation(initiated=ROTATED, keeps_old=False),
        ["ca-extension-2"],
        "ca-extension-2",
    ),
    "completed": (
        [NEW, ONLY],
        SecretRotation(initiated=ROTATED, keeps_old=False),
        ["ca-extension-2"],
        "ca-extension-2",
    ),
    "renewed by Gardener's manager by age, without a rotation": (
        [OLD, NEW, BOTH],
        SecretRotation(),
        ["ca-extension-2", "ca-extension-1"],
        "ca-extension-1",
    ),
}


def signer_of(issued):
    issuer = x509.load_pem_x509_certificate(issued["server"]["tls.crt"]).issuer
    return issuer.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value


@pytest.mark.parametrize("phase", PHASES)
def test_each_phase_of_a_rotation_is_taken_over(phase):
    secrets, rotation, trusted, signer = PHASES[phase]
    client = RecordingClient(*secrets)
    configs = [Authority(name=NAME, rotation=rotation), SERVER, CLIENT]
    issued = manage(client, configs)
    assert [item.secret_name for item in issued[NAME].trusted] == trusted
    assert signer_of(issued) == signer
    assert openssl_accepts(issued)
    authorities = [secret["metadata"]["name"] for secret in secrets if "ca.key" in secret["data"]]
    created = {name for name in names(client) if name.startswith("ca-")} - set(authorities)
    assert created == {issued[NAME].bundle_secret_name}
    if phase != "before any rotation":
        assert created <= {"ca-bundle-1", "ca-bundle-2"}, "the bundle of Gardener's stays"
    again = manage(client, configs)
    assert {name: item.secret_name for name, item in again.items()} == {
        name: item.secret_name for name, item in issued.items()
    }


def test_the_bundles_secret_is_as_gardeners_and_is_named_by_all_that_need_it():
    client = RecordingClient()
    issued = manage(client)
    [name] = {item.bundle_secret_name for item in issued.values()}
    secret = client.get(SECRETS, name, NAMESPACE)
    labels = secret["metadata"]["labels"]
    assert name.startswith(f"{NAME}-bundle-")
    assert labels["name"] == f"{NAME}-bundle"
    assert (labels["bundle-for"], labels["manager-identity"]) == (NAME, IDENTITY)
    assert "persist" not in labels, "it is made of what persists"
    assert secret["immutable"] is True
    assert base64.b64decode(secret["data"]["bundle.crt"]) == issued["server"].bundle
    rotated = manage(
        client, [Authority(name=NAME, rotation=SecretRotation(initiated=ROTATED)), SERVER]
    )
    assert rotated[NAME].bundle_secret_name != name
    assert name not in names(client), "cleanup deletes bundles that nothing needs"


def first_block(pem):
    """Return the result of Go's `pem.Decode`: the mark and the content of the first block."""
    begin, _, rest = pem.decode().partition("-----BEGIN ")[2].partition("-----\n")
    return begin, base64.b64decode(rest.partition("-----END ")[0])


def test_gardeners_manager_can_read_our_authority_and_sign_with_it():
    issued = manage(RecordingClient())[NAME]
    mark, content = first_block(issued["ca.key"])
    key = load_der_private_key(content, None)
    assert mark == "RSA PRIVATE KEY", "utils.DecodePrivateKey refuses another"
    assert content == der(key, PrivateFormat.TraditionalOpenSSL), "x509.ParsePKCS1PrivateKey"
    assert isinstance(key, RSAPrivateKey)
    assert key.key_size == 3072
    mark, content = first_block(issued["ca.crt"])
    certificate = x509.load_der_x509_certificate(content)
    assert mark == "CERTIFICATE"
    assert certificate.public_key() == key.public_key(), "x509.CreateCertificate"
    extensions = certificate.extensions
    assert extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert certificate.version is x509.Version.v3


def unreadable(data):
    good = {"ca.crt": go_certificate(KEYS["p-256"], "x"), "ca.key": forms(KEYS["p-256"])["own"]}
    return {**good, **data}


SECRET = BestAvailableEncryption(b"x")
PROBLEMS = {
    "the key of another": ({"ca.key": forms(KEYS["p-384"])["own"]}, "does not belong to the cert"),
    "no PEM": ({"ca.key": b"key"}, "there is no private key in PEM format"),
    "damaged": ({"ca.key": block("RSA PRIVATE KEY", b"nothing")}, "is encrypted, damaged, or of"),
    "encrypted": (
        {"ca.key": KEYS["p-256"].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, SECRET)},
        "is encrypted, damaged, or of an unknown format",
    ),
    "encrypted, older": (
        {
            "ca.key": KEYS["rsa-3072"].private_bytes(
                Encoding.PEM, PrivateFormat.TraditionalOpenSSL, SECRET
            )
        },
        "is encrypted, damaged, or of an unknown format",
    ),
    "another kind": (
        {
            "ca.key": ed25519.Ed25519PrivateKey.generate().private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
            )
        },
        "is neither RSA nor EC",
    ),
    "no certificate": ({"ca.crt": b"crt"}, "cannot sign with ca.crt and ca.key"),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_an_authority_that_cannot_sign_is_named_with_a_remedy(problem):
    data, words = PROBLEMS[problem]
    client = RecordingClient(go_secret("ca-extension-1", unreadable(data)))
    with pytest.raises(ConfigurationError, match=words) as caught:
        manage(client)
    text = str(caught.value)
    assert text.startswith(f"Secret {NAMESPACE}/ca-extension-1: cannot sign with ca.crt and ca.key")
    assert "delete the Secret to replace it" in text
    assert "PRIVATE" not in text

"""Secrets of webhook certificates as others may write them, and the rules that hold for each.

A Secret is generated from a real one: with certificates of other lifetimes, keys and usages, with
parts of other Secrets, and with odd text. A Secret that the product accepts can be served, and
nothing in it is valid for longer than the product's own.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from actuator.meta import Raw
from generic.library.webhooks.certificates import DEFAULTS, Step, from_secret, plan, take
from generic.library.webhooks.server import server_context
from tests.adversary.inputs import rng_of
from tests.adversary.judge import Report

__all__ = ["attack_webhook_secrets"]

_HOSTS = ["gardener-extension-a.garden"]
_LONGEST = timedelta(days=31)
_NAMES = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_KEYS: list[ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey] = [
    *(ec.generate_private_key(curve) for curve in (ec.SECP256R1(), ec.SECP384R1())),
    rsa.generate_private_key(65537, 2048),
]
_FORMATS = (
    serialization.PrivateFormat.TraditionalOpenSSL,
    serialization.PrivateFormat.PKCS8,
)


def attack_webhook_secrets(_: Any, seed: int, numbers: Sequence[int], report: Report) -> None:
    """Read a Secret for each number."""
    now = datetime.now(UTC)
    real = take(Step.START, None, _HOSTS, now, DEFAULTS).data()
    for number in numbers:
        secret = _secret(rng_of(seed, "webhooksecrets", number), real, now)
        if found := _problem(secret, now):
            report.complain("certificates", f"--only {number}", found)
        report.counts["lived"] += 1


def _problem(secret: Raw, now: datetime) -> str | None:
    try:
        found = from_secret(secret)
    except Exception as error:
        return f"it raises {error!r}"
    if found is None:
        return None
    for item in (*found.trusted, found.serving.certificate):
        certificate = x509.load_pem_x509_certificate(item)
        if certificate.not_valid_after_utc - certificate.not_valid_before_utc > _LONGEST:
            return f"a certificate until {certificate.not_valid_after_utc} is accepted"
    try:
        server_context(found.serving)
        plan(found, now, _HOSTS, now, DEFAULTS)
    except Exception as error:
        return f"what is accepted cannot be served: {error!r}"
    return None


def _secret(rng: random.Random, real: Raw, now: datetime) -> Raw:
    data: dict[str, Any] = dict(real)
    for _ in range(rng.choice([0, 1, 1, 2])):
        data |= _forged(rng, now)
    if not rng.randrange(3):
        data[rng.choice(_NAMES)] = _odd(rng, data)
    return {"data": data} if rng.randrange(20) else rng.choice([{}, {"data": None}, data])


def _forged(rng: random.Random, now: datetime) -> dict[str, str]:
    """A certificate that signs itself, and its key, as the authority or as that of the server."""
    key = rng.choice(_KEYS)
    is_authority = bool(rng.randrange(2))
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    lasts = timedelta(days=rng.choice([-1, 1, 10, 30, 36500]))
    usage = [rng.randrange(4) == 0 for _ in range(9)]
    usage[5 if is_authority else 0] = True
    usage[7] = usage[8] = False  # without key_agreement they are no usages
    builder = (
        x509.CertificateBuilder(subject, subject, key.public_key(), rng.getrandbits(64) + 1)
        .not_valid_before(now - timedelta(days=rng.choice([0, 2, 400])))
        .not_valid_after(now + max(lasts, timedelta(days=1)))
        .add_extension(x509.KeyUsage(*usage), critical=True)
    )
    if rng.randrange(3):
        basic = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
        builder = builder.add_extension(basic, critical=True)
    if rng.randrange(3):
        names = x509.SubjectAlternativeName([x509.DNSName(_HOSTS[0])])
        builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = rng.choice(_FORMATS)
    text = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    place = "ca" if is_authority else "tls"
    return {f"{place}.crt": _encoded(certificate), f"{place}.key": _encoded(text)}


def _odd(rng: random.Random, data: dict[str, Any]) -> Any:
    whole = base64.b64decode(data[rng.choice(_NAMES)])
    at = rng.randrange(len(whole))
    return rng.choice(
        (
            *(None, 1, "%", "", [], {}),
            _encoded(whole[:at]),
            _encoded(whole[:at] + bytes([rng.randrange(256)]) + whole[at + 1 :]),
            _encoded(whole * rng.choice([2, 3, 200])),
            _encoded(b"x\n" + whole),
        )
    )


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()

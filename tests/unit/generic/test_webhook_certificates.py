"""Webhook certificates rotate in steps, and an API server trusts them at every moment."""

import base64
import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import attrs
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import KeyUsage

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.kube.certificates import CLIENT_AUTH, SERVER_AUTH, KeyPair, new_private_key
from generic.library.webhooks.certificates import (
    DEFAULTS,
    Certificates,
    Lifetimes,
    Step,
    expiry,
    from_secret,
    plan,
    take,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = ["gardener-extension-a.garden", "10.0.0.1", "::1"]
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def begun(at: datetime = START) -> Certificates:
    return take(Step.START, None, HOSTS, at, DEFAULTS)


def after(*steps: tuple[Step, timedelta]) -> Certificates:
    current = begun()
    for step, since in steps:
        current = take(step, current, HOSTS, START + since, DEFAULTS)
    return current


ADDED = (Step.ADD, 24 * DAY)
SIGNED = (Step.SIGN, 24 * DAY + HOUR)
RENEWED = (Step.SIGN, 16 * DAY)

TABLE = [
    ("nothing is due", (), 1 * DAY, 0 * DAY, Step.NOTHING),
    ("the certificate is old", (), 8 * DAY, 0 * DAY, Step.SIGN),
    ("the certificate expired", (), 10 * DAY, 0 * DAY, Step.START),
    ("the clock is before it", (), -1 * DAY, 0 * DAY, Step.START),
    ("the authority is old", (RENEWED,), 24 * DAY, 0 * DAY, Step.ADD),
    ("it must last until the next one signs", (RENEWED,), 26 * DAY - HOUR, 0 * DAY, Step.SIGN),
    ("the new one is not published", (RENEWED, ADDED), 25 * DAY, None, Step.NOTHING),
    ("it is not known long enough", (RENEWED, ADDED), 25 * DAY, 25 * DAY - HOUR / 2, Step.NOTHING),
    ("it is known", (RENEWED, ADDED), 25 * DAY, 25 * DAY - HOUR, Step.SIGN),
    ("replicas serve the old one", (RENEWED, ADDED, SIGNED), 24 * DAY + HOUR, DAY, Step.NOTHING),
    ("the old one is unused", (RENEWED, ADDED, SIGNED), 24 * DAY + 2 * HOUR, DAY, Step.DROP),
]


@pytest.mark.parametrize(("_why", "steps", "age", "published", "step"), TABLE)
def test_step_that_is_due(_why, steps, age, published, step):
    since = None if published is None else START + published
    assert plan(after(*steps), since, HOSTS, START + age, DEFAULTS) is step


@pytest.mark.parametrize(("_why", "steps", "age", "published", "_step"), TABLE)
def test_no_step_is_due_by_a_clock_that_is_not_trusted(_why, steps, age, published, _step):
    since = None if published is None else START + published
    now = START + age
    assert plan(after(*steps), since, HOSTS, now, DEFAULTS, is_trusted=False) is Step.NOTHING


@pytest.mark.parametrize("is_trusted", [True, False])
def test_no_certificate_starts_at_once(is_trusted):
    assert plan(None, None, HOSTS, START, DEFAULTS, is_trusted=is_trusted) is Step.START


@pytest.mark.parametrize("is_trusted", [True, False])
def test_other_hosts_need_another_certificate(is_trusted):
    current = begun()
    assert plan(current, START, ["b"], START, DEFAULTS, is_trusted=is_trusted) is Step.SIGN
    signed = take(Step.SIGN, current, ["0:0::1", "B"], START, DEFAULTS)
    assert plan(signed, START, ["B", "::1"], START, DEFAULTS) is Step.NOTHING
    with pytest.raises(ConfigurationError, match="webhook host 'ä'"):
        plan(current, START, ["ä"], START, DEFAULTS)


def test_replicas_with_different_hosts_share_one_certificate_until_it_is_renewed():
    both = take(Step.SIGN, begun(), ["b"], START, DEFAULTS)
    assert plan(both, START, ["b"], START, DEFAULTS) is Step.NOTHING
    assert plan(both, START, HOSTS, START, DEFAULTS) is Step.NOTHING
    renewed = take(Step.SIGN, both, ["b"], START + 8 * DAY, DEFAULTS)
    assert plan(renewed, START, HOSTS, START + 8 * DAY, DEFAULTS) is Step.SIGN


def test_the_hosts_of_one_certificate_are_limited():
    current = begun()
    for number in range(30):
        current = take(Step.SIGN, current, [f"host-{number}"], START, DEFAULTS)
    serving = x509.load_pem_x509_certificate(current.serving.certificate)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert len(list(names)) == 17
    assert plan(current, START, ["host-29"], START, DEFAULTS) is Step.NOTHING


def test_the_secret_is_read_as_it_was_written():
    current = after(RENEWED, ADDED)
    assert from_secret({"data": current.data()}) == current
    assert current.key not in str(current).encode()


def text(value: bytes) -> str:
    return base64.b64encode(value).decode()


GARBLED: dict[str, Raw] = {
    "no data": {},
    "null": {"data": None},
    "no key": {"data": {"ca.key": None}},
    "no base64": {"data": {"tls.crt": "%"}},
    "no certificate": {"data": {"tls.crt": text(b"x")}},
    "no authority": {"data": {"ca.crt": ""}},
    "another key": {"data": {"tls.key": text(new_private_key())}},
    "another authority's key": {"data": {"ca.key": text(new_private_key())}},
    "a certificate without hosts": {},
}


@pytest.mark.parametrize("case", GARBLED)
def test_a_garbled_secret_is_replaced(case):
    current = begun()
    if case == "a certificate without hosts":
        ca = {"tls.crt": text(current.bundle), "tls.key": text(current.key)}
        secret = {"data": current.data() | ca}
    else:
        wrong = GARBLED[case].get("data")
        secret = {"data": current.data() | wrong} if wrong else GARBLED[case]
    assert from_secret(secret) is None


YEARS = timedelta(days=36500)
SERVES, SIGNS = (KeyUsage(*[on in wanted for on in range(9)]) for wanted in ((0, 2), (5, 6)))
KEYS: dict[str, Any] = {
    "P-256": ec.generate_private_key(ec.SECP256R1()),
    "P-384": ec.generate_private_key(ec.SECP384R1()),
    "RSA": rsa.generate_private_key(65537, 2048),
}
OURS = {
    "key": "P-256",
    "lasts": DAY,
    "usage": SERVES,
    "extended": x509.ExtendedKeyUsage([SERVER_AUTH]),
    "basic": None,
}
AUTHORITY = {"usage": SIGNS, "extended": None, "basic": x509.BasicConstraints(True, 0)}


def pem(key: str = "P-256", form=serialization.PrivateFormat.TraditionalOpenSSL) -> bytes:
    plain = serialization.NoEncryption()
    return KEYS[key].private_bytes(serialization.Encoding.PEM, form, plain)


def certificate(authority: Certificates, **changes: Any) -> bytes:
    """A serving certificate as ours, signed by the authority, with some changes."""
    made = {**OURS, **changes}
    issuing = x509.load_pem_x509_certificate(authority.trusted[-1])
    names = x509.SubjectAlternativeName([x509.DNSName("a")])
    builder = (
        x509.CertificateBuilder(issuing.subject, issuing.subject, KEYS[made["key"]].public_key())
        .serial_number(1)
        .not_valid_before(START - HOUR)
        .not_valid_after(START + made["lasts"])
        .add_extension(names, critical=False)
    )
    for item in (made["usage"], made["extended"], made["basic"]):
        if item is not None:
            builder = builder.add_extension(item, critical=True)
    key = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def forged(**parts: bytes) -> dict[str, Any]:
    """A Secret of ours with other parts."""
    given = {"ca.crt": parts.pop("ca", None), "ca.key": parts.pop("ca_key", None)}
    given |= {"tls.crt": parts.pop("crt", None), "tls.key": parts.pop("key", None)}
    return {"data": begun().data() | {name: text(item) for name, item in given.items() if item}}


def test_a_certificate_as_ours_is_read():
    for made in (certificate(begun()), certificate(begun(), lasts=10 * DAY)):
        assert from_secret(forged(crt=made, key=pem())) is not None
    authority = certificate(begun(), **AUTHORITY, lasts=30 * DAY)
    assert from_secret(forged(ca=authority, ca_key=pem())) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"lasts": YEARS},
        {"lasts": 10 * DAY + HOUR},
        {"key": "P-384"},
        {"key": "RSA"},
        {"usage": SIGNS},
        {"usage": None},
        {"extended": x509.ExtendedKeyUsage([CLIENT_AUTH])},
        {"extended": x509.ExtendedKeyUsage([SERVER_AUTH, CLIENT_AUTH])},
        {"extended": None},
        {"basic": x509.BasicConstraints(True, None)},
        AUTHORITY,
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_serving_certificate_that_we_would_not_issue_is_replaced(changes):
    made = certificate(begun(), **changes)
    assert from_secret(forged(crt=made, key=pem(changes.get("key", "P-256")))) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"lasts": YEARS},
        {"lasts": 30 * DAY + HOUR},
        {"key": "P-384"},
        {"key": "RSA"},
        {"usage": SERVES},
        {"basic": x509.BasicConstraints(True, 1)},
        {"basic": x509.BasicConstraints(True, None)},
        {"basic": x509.BasicConstraints(False, None)},
        {"basic": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.parametrize("is_newest", [True, False])
def test_an_authority_that_we_would_not_make_is_replaced(changes, is_newest):
    made = certificate(begun(), **{**AUTHORITY, **changes})
    ours = begun()
    secret = forged(ca=made, ca_key=pem(changes.get("key", "P-256")))
    if not is_newest:
        secret = forged(ca=made + ours.bundle, ca_key=ours.key)
    assert from_secret(secret) is None


@pytest.mark.parametrize(
    "parts",
    [
        {"ca": begun().bundle * 3},
        {"ca": b"a comment\n" + begun().bundle},
        {"ca": begun().bundle + b"\n" * 2**17},
        {"crt": certificate(begun()) + b"a comment", "key": pem()},
        {"crt": certificate(begun()), "key": pem(form=serialization.PrivateFormat.PKCS8)},
        {"crt": certificate(begun()), "key": pem() + b"\n"},
    ],
)
def test_another_text_than_ours_is_replaced(parts):
    assert from_secret(forged(**parts)) is None


@pytest.mark.parametrize("lasts", [-HOUR / 2, HOUR])
def test_an_authority_that_is_not_valid_any_more_is_replaced_at_once(lasts):
    ours = begun()
    expired = certificate(ours, **AUTHORITY, lasts=lasts)
    authority = attrs.evolve(ours, trusted=[expired], key=pem())
    made = attrs.evolve(authority, serving=KeyPair(certificate(authority), pem()))
    at = START + 2 * HOUR
    assert plan(made, START, ["a"], at, DEFAULTS) is Step.START
    assert plan(made, START, ["a"], at, DEFAULTS, is_trusted=False) is Step.NOTHING


@cache
def issuer(bundle: bytes, certificate: bytes) -> x509.Certificate | None:
    serving = x509.load_pem_x509_certificate(certificate)
    for authority in x509.load_pem_x509_certificates(bundle):
        with suppress(ValueError, InvalidSignature):
            serving.verify_directly_issued_by(authority)
            return authority
    return None


def trusts(bundle: bytes, pair: KeyPair, now: datetime) -> bool:
    authority = issuer(bundle, pair.certificate)
    return authority is not None and now < expiry(pair) and now < authority.not_valid_after_utc


class World:
    """Two replicas that pass at random times, and an API server that learns late."""

    def __init__(self, seed: int, lifetimes: Lifetimes) -> None:
        self.random = random.Random(seed)
        self.lifetimes = lifetimes
        self.secret = begun_with(lifetimes)
        self.published = [(START, self.secret.bundle)]
        self.replicas = [(self.secret, START), (self.secret, START)]
        """The certificate that each serves, and the time when it saw the published bundle."""

    def step(self, now: datetime) -> Step:
        who = self.random.randrange(2)
        served, since = self.replicas[who]
        taken = Step.NOTHING
        while True:
            since = since if self.secret.bundle == served.bundle else now
            served = self.secret
            self.published.append((now, served.bundle))
            step = plan(served, since, HOSTS, now, self.lifetimes)
            if step is Step.NOTHING:
                break
            self.secret = take(step, self.secret, HOSTS, now, self.lifetimes)
            assert from_secret({"data": self.secret.data()}, self.lifetimes) == self.secret
            taken = step
        self.replicas[who] = (served, since)
        return taken

    def check(self, now: datetime) -> None:
        late = now - self.lifetimes.settle * 0.9
        before = [bundle for at, bundle in self.published if at <= late]
        known = [(before or [self.published[0][1]])[-1]]
        known += [bundle for at, bundle in self.published if at > late]
        for served, _ in self.replicas:
            for bundle in known:  # the API server knows one of these
                assert trusts(bundle, served.serving, now)
        self.published = self.published[-100:]


def begun_with(lifetimes: Lifetimes) -> Certificates:
    return take(Step.START, None, HOSTS, START, lifetimes)


@pytest.mark.parametrize("seed", range(2))
def test_the_certificate_is_trusted_at_every_moment(seed):
    """Replicas pass every half of a settle time at least; the API server learns in 0.9 of one."""
    lifetimes = Lifetimes(authority=30 * HOUR, serving=10 * HOUR, settle=HOUR)
    world = World(seed, lifetimes)
    now = START
    steps: list[Step] = []
    while steps.count(Step.DROP) < 2:
        now += HOUR * world.random.uniform(0.01, 0.12)
        steps.append(world.step(now))
        world.check(now)
        assert now < START + 20 * DAY
    assert Step.START not in steps
    assert steps.count(Step.ADD) == 2


def test_a_lost_authority_is_replaced_and_the_old_bundle_kept():
    current = begun()
    foreign = attrs.evolve(current, trusted=begun().trusted, key=begun().key)
    for is_trusted in (True, False):
        assert plan(foreign, START, HOSTS, START, DEFAULTS, is_trusted=is_trusted) is Step.START
    replaced = take(Step.START, foreign, HOSTS, START, DEFAULTS)
    assert replaced.trusted[0] == foreign.trusted[0]
    assert len(replaced.trusted) == 2

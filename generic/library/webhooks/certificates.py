"""The certificates of a webhook server, and the steps of their rotation. Pure.

The API server trusts a bundle of authorities, and all replicas serve the same certificate. A new
authority is in the bundle for a while before it signs the certificate, and the old one stays in the
bundle for a while after that, so that no request fails in between. The private key of an old
authority is not kept.
"""

import base64
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import attrs
from cryptography.exceptions import InvalidSignature

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.kube.certificates import (
    SERVER_AUTH,
    SKEW,
    KeyPair,
    fits,
    general_name,
    is_as_issued,
    issue,
    new_authority,
    x509,
)

_OVER = 0.8
"""The part of a lifetime after which a certificate is replaced."""
_DATA = ("ca.crt", "ca.key", "tls.crt", "tls.key")
"""The names in the Secret."""
_END = b"-----END CERTIFICATE-----\n"
_MAX_BYTES = 64 * 1024
_MAX_TRUSTED = 2
"""Maximum size of the Secret's data in base64, and maximum authorities: an old and a new one."""
_MAX_KNOWN = 16
"""Maximum hosts that a new certificate has from the one before."""


@attrs.frozen(kw_only=True)
class Lifetimes:
    """The durations of a rotation."""

    authority: timedelta = timedelta(days=30)
    serving: timedelta = timedelta(days=10)
    settle: timedelta = timedelta(hours=1)
    """Time in which every API server learns a new bundle, and every replica a new certificate."""


DEFAULTS = Lifetimes()


class Step(StrEnum):
    """One step of the life of certificates."""

    NOTHING = "nothing"
    START = "start"
    """Create an authority and a certificate at once: there is none that works."""
    ADD = "add"
    """Add a new authority to the bundle."""
    SIGN = "sign"
    """Sign a new certificate by the newest authority."""
    DROP = "drop"
    """Remove the old authorities from the bundle."""


@attrs.frozen(kw_only=True)
class Certificates:
    """The trusted authorities, oldest first, the newest one's key, and the serving certificate."""

    trusted: Sequence[bytes] = attrs.field(converter=tuple[bytes, ...])
    key: bytes = attrs.field(repr=False)
    serving: KeyPair

    @property
    def bundle(self) -> bytes:
        """The trusted certificates, PEM."""
        return b"".join(self.trusted)

    def data(self) -> Raw:
        """Return the data of the Secret."""
        parts = (self.bundle, self.key, self.serving.certificate, self.serving.key)
        return {
            name: base64.b64encode(part).decode() for name, part in zip(_DATA, parts, strict=True)
        }


def expiry(pair: KeyPair) -> datetime:
    """Return when a certificate expires. Raises ValueError if it is none."""
    return _load(pair.certificate).not_valid_after_utc


def from_secret(secret: Raw, lifetimes: Lifetimes = DEFAULTS) -> Certificates | None:
    """Return the certificates in a Secret; None if they are not as `take` makes them.

    Anybody with access to the Secret may have written it: an authority that is valid for a hundred
    years would be published, and never replaced.
    """
    data = secret.get("data") or {}
    try:
        encoded = [data[name] for name in _DATA]
        if sum(map(len, encoded)) > _MAX_BYTES:
            return None
        ca, key, crt, tls = (base64.b64decode(item, validate=True) for item in encoded)
        trusted = [part + _END for part in ca.split(_END) if part.strip()]
        found = Certificates(trusted=trusted, key=key, serving=KeyPair(crt, tls))
        return found if _is_ours(found, lifetimes) else None
    except Exception:  # of each kind: `cryptography` parses what anybody wrote
        return None


def _is_ours(found: Certificates, lifetimes: Lifetimes) -> bool:
    """Whether these can be those of `take`. Raises exceptions if they cannot be read."""
    serving = found.serving
    hosts = _hosts(_load(found.serving.certificate))
    return (
        len(found.trusted) <= _MAX_TRUSTED
        and all(is_as_issued(item, lifetimes.authority) for item in found.trusted)
        and fits(KeyPair(found.trusted[-1], found.key))
        and is_as_issued(serving.certificate, lifetimes.serving, [SERVER_AUTH])
        and fits(serving)
        and bool(hosts)
    )


def plan(
    current: Certificates | None,
    published: datetime | None,
    hosts: Sequence[str],
    now: datetime,
    lifetimes: Lifetimes,
    *,
    is_trusted: bool = True,
) -> Step:
    """Return the next step: at most one is due at a time.

    `published` is the time since which the configurations have the bundle; None: they do not.
    Without `is_trusted`, nothing is replaced because of `now`: the key of an old authority is lost,
    and the other replicas may have the right time.
    Raises ConfigurationError for an invalid host.
    """
    if current is None:
        return Step.START
    newest = _load(current.trusted[-1])
    serving = _load(current.serving.certificate)
    signers = [item for item in map(_load, current.trusted) if _signs(item, serving)]
    if not signers or (
        is_trusted and not all(_is_valid(signer, now) for signer in (*signers, serving))
    ):
        return Step.START
    has_hosts = _hosts(serving) >= {_general_name(host) for host in hosts}
    if not is_trusted:
        return Step.NOTHING if has_hosts or len(current.trusted) > 1 else Step.SIGN
    if not _signs(newest, serving):  # by an older one
        is_known = published is not None and now >= published + lifetimes.settle
        return Step.SIGN if is_known else Step.NOTHING
    if len(current.trusted) > 1:
        return Step.DROP if now >= _issued(serving) + lifetimes.settle else Step.NOTHING
    if _is_old(newest, now):
        # The certificate has to last until the new authority may sign.
        needed = min(now + 3 * lifetimes.settle, newest.not_valid_after_utc)
        return Step.ADD if serving.not_valid_after_utc >= needed else Step.SIGN
    return Step.SIGN if _is_old(serving, now) or not has_hosts else Step.NOTHING


def take(
    step: Step,
    current: Certificates | None,
    hosts: Sequence[str],
    now: datetime,
    lifetimes: Lifetimes,
) -> Certificates:
    """Return the certificates after a step. Raises ConfigurationError for an invalid host."""
    if current is None or step is Step.START:
        authority = _new_authority(now, lifetimes)
        old = current.trusted if current else ()
        still = [item for item in old if _load(item).not_valid_after_utc > now][-1:]
        serving = _sign(authority, hosts, now, lifetimes)
        return Certificates(
            trusted=[*still, authority.certificate], key=authority.key, serving=serving
        )
    if step is Step.ADD:
        authority = _new_authority(now, lifetimes)
        return attrs.evolve(
            current, trusted=[*current.trusted, authority.certificate], key=authority.key
        )
    if step is Step.DROP:
        return attrs.evolve(current, trusted=current.trusted[-1:])
    authority = KeyPair(current.trusted[-1], current.key)
    former = _load(current.serving.certificate)
    # Replicas of another version may have other hosts; a renewal forgets those of the past.
    known = () if _is_old(former, now) else sorted(_hosts(former), key=str)[:_MAX_KNOWN]
    return attrs.evolve(current, serving=_sign(authority, hosts, now, lifetimes, known))


def _new_authority(now: datetime, lifetimes: Lifetimes) -> KeyPair:
    return new_authority(f"webhooks-{now.timestamp():.3f}", now, lifetimes.authority)


def _sign(
    authority: KeyPair,
    hosts: Sequence[str],
    now: datetime,
    lifetimes: Lifetimes,
    known: Iterable[x509.GeneralName] = (),
) -> KeyPair:
    names = list(dict.fromkeys([*map(_general_name, hosts), *known]))
    return issue(
        authority, hosts[0][:64], now, lifetimes.serving, usages=[SERVER_AUTH], names=names
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return general_name(host)
    except ValueError as error:
        raise ConfigurationError(f"webhook host {host!r}: {error}; correct it") from error


def _load(certificate: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate)


def _issued(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + SKEW


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _is_old(certificate: x509.Certificate, now: datetime) -> bool:
    issued = _issued(certificate)
    return now >= issued + _OVER * (certificate.not_valid_after_utc - issued)


def _signs(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _hosts(certificate: x509.Certificate) -> set[x509.GeneralName]:
    return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)

"""SecretsManager: which key pairs there have to be, which are still good, which may go.

`ensure` is the whole: authorities first, then the certificates that they sign. A key pair is made
anew when its configuration changes, when 80 % of its validity are over or less than 10 days are
left, when the authority that signed it is no longer the one that does, and, an authority, when a
rotation was asked for. What nobody knows of, because an answer got lost, is found again by its
labels. Of two that were made at the same time the newer one counts, and `cleanup` takes the other.

Rotation of authorities (Gardener documentation, "Credentials Rotation", "Certificate
Authorities"): until the rotation is being completed, the old authority signs for servers, clients
get their certificate from the new one, and the bundle has both. Completing drops the old one.

Take-over: an authority that Gardener's own secrets manager made for the same identity is used
until the next rotation, so that nobody loses trust. Certificates are issued anew by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from actuator.errors import AlreadyExists, ConfigurationError, Conflict, NotFound, RequeueAfter
from actuator.interface import Client, Clock, Permission, Resource
from generic.kube.certificates import KeyPair
from generic.library.secrets.certificates import new_authority, sign, validity
from generic.library.secrets.config import (
    Authority,
    Certificate,
    Config,
    Usage,
    checksum_of,
)
from generic.library.secrets.kept import IDENTITY, MANAGED_BY, Issued, Kept, read

_SECRETS = Resource("v1", "secrets")
_LEFT = timedelta(days=10)
_OVER = 0.8
_CHANGED = 1.0

PERMISSIONS = (
    Permission(api_version="v1", resource="secrets", verbs=["get", "list", "create", "delete"]),
)
"""What a SecretsManager does in the API."""


class SecretsManager:
    """Key pairs in one namespace, of one owner; what `GenericControlPlane.secrets_manager` wants.

    `identity` tells its Secrets from those of other managers in the namespace: the extension's
    name. Raises ApiError from every method.
    """

    def __init__(self, client: Client, namespace: str, identity: str, clock: Clock) -> None:
        self._client = client
        self._namespace = namespace
        self._identity = identity
        self._clock = clock
        self._wanted: set[str] = set()

    def ensure(self, configs: Iterable[Config], /) -> dict[str, Issued]:
        """Afterwards all of these exist; what there is of each now, by its config's name.

        Raises ConfigurationError for a certificate whose authority is not among them, and for
        names that are there twice; RequeueAfter where another one made the same meanwhile.
        """
        wanted = list(configs)
        _check(wanted)
        kept = self._kept()
        authorities = {
            config.name: self._authorities(config, kept)
            for config in wanted
            if isinstance(config, Authority)
        }
        issued: dict[str, Issued] = {}
        for config in wanted:
            if isinstance(config, Authority):
                trusted = authorities[config.name]
                current = trusted[0]
            else:
                trusted = authorities[config.authority]
                current = self._certificate(config, _signer(config, trusted), kept)
            issued[config.name] = _issued(current, trusted)
        return issued

    def cleanup(self) -> None:
        """Deletes this manager's Secrets that no `ensure` of this object asked for.

        Without any `ensure` that is all of them.
        """
        for kept in self._kept():
            if kept.secret_name not in self._wanted:
                try:
                    self._client.delete(_SECRETS, kept.secret_name, self._namespace, uid=kept.uid)
                except (NotFound, Conflict):
                    continue

    def _kept(self) -> list[Kept]:
        selector = f"{'='.join(MANAGED_BY)},{IDENTITY}={self._identity}"
        found = self._client.list(_SECRETS, self._namespace, label_selector=selector)
        return [kept for secret in found if (kept := read(secret)) is not None]

    def _authorities(self, config: Authority, kept: Sequence[Kept]) -> list[Kept]:
        """The current authority, and behind it the former one while it is still trusted."""
        rotation = config.rotation
        mine = sorted(
            (k for k in kept if k.name == config.name), key=lambda k: k.issued, reverse=True
        )
        checksum = checksum_of(config)
        good = [
            k
            for k in mine
            if k.rotated == rotation.stamp
            and (k.checksum == checksum or k.made_by_gardener)
            and not self._is_old(k)
        ]
        current = good[0] if good else self._new_authority(config, checksum)
        former = [k for k in mine if k.rotated != rotation.stamp][:1] if rotation.keeps_old else []
        trusted = [current, *former]
        self._wanted |= {one.secret_name for one in trusted}
        return trusted

    def _new_authority(self, config: Authority, checksum: str) -> Kept:
        name = self._new_name(config, config.rotation.stamp)
        pair = new_authority(config, name, self._clock.now())
        return self._create(config, name, checksum, pair)

    def _certificate(self, config: Certificate, authority: Kept, kept: Sequence[Kept]) -> Kept:
        checksum = checksum_of(config, authority.secret_name)
        good = [
            k
            for k in kept
            if (k.name, k.checksum) == (config.name, checksum) and not self._is_old(k)
        ]
        if good:
            current = max(good, key=lambda k: k.issued)
        else:
            name = self._new_name(config, authority.secret_name)
            pair = sign(config, authority.pair, self._clock.now())
            current = self._create(config, name, checksum, pair)
        self._wanted.add(current.secret_name)
        return current

    def _new_name(self, config: Config, made_for: str) -> str:
        """Another one for each moment: a Secret never comes back with another key."""
        moment = str(int(self._clock.now().timestamp()))
        return f"{config.name}-{checksum_of(config, self._identity, made_for, moment)}"

    def _create(self, config: Config, secret_name: str, checksum: str, pair: KeyPair) -> Kept:
        made = Kept(
            name=config.name,
            checksum=checksum,
            rotated=config.rotation.stamp if isinstance(config, Authority) else "",
            issued=self._clock.now(),
            valid_until=validity(pair.certificate)[1],
            pair=pair,
            is_authority=isinstance(config, Authority),
            secret_name=secret_name,
        )
        try:
            self._client.create(_SECRETS, made.manifest(self._namespace, self._identity))
        except AlreadyExists as error:
            raise RequeueAfter(
                _CHANGED, f"Secret {self._namespace}/{secret_name} was made meanwhile"
            ) from error
        return made

    def _is_old(self, kept: Kept) -> bool:
        now = self._clock.now()
        renewal = kept.issued + _OVER * (kept.valid_until - kept.issued)
        return now >= min(renewal, kept.valid_until - _LEFT) if _is_long(kept) else now >= renewal


def _is_long(kept: Kept) -> bool:
    """Whether the last days before the end count: a short certificate would always be old."""
    return kept.valid_until - kept.issued > 2 * _LEFT


def _signer(config: Certificate, trusted: Sequence[Kept]) -> Kept:
    """The former authority for servers while there is one: their clients may not know the new."""
    return trusted[-1] if config.usage is not Usage.CLIENT else trusted[0]


def _issued(current: Kept, trusted: Sequence[Kept]) -> Issued:
    bundle = b"".join(one.pair.certificate for one in trusted)
    return Issued(kept=current, bundle=bundle)


def _check(configs: Sequence[Config]) -> None:
    names = [config.name for config in configs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"more than one secret is called {', '.join(twice)}; rename one")
    authorities = {config.name for config in configs if isinstance(config, Authority)}
    for config in configs:
        if isinstance(config, Certificate) and config.authority not in authorities:
            raise ConfigurationError(
                f"certificate {config.name}: there is no authority {config.authority!r}; "
                "pass its Authority beside it"
            )

"""SecretsManager: creates the required key pairs, renews them, and deletes unused ones.

`ensure` is the whole flow: authorities first, then the certificates that they sign. A key pair is
replaced when its configuration changes, when 80 % of its validity have passed or less than 10 days
are left, when the authority for signing has changed, and, for an authority, when a rotation was
requested. A Secret whose creation was not acknowledged is found again by its labels. Of two that
were created concurrently the newer one is used, and `cleanup` deletes the other.

Rotation of authorities (Gardener documentation, "Credentials Rotation", "Certificate
Authorities"): until the rotation is completing, the old authority signs for servers, clients get
their certificate from the new one, and the bundle has both. Completing removes the old one.

Take-over: an authority that Gardener's own secrets manager created for the same identity is used
until the next rotation, so that no client loses trust. It issues new certificates.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta

from actuator.errors import AlreadyExists, ConfigurationError, Conflict, NotFound, RequeueAfter
from actuator.interface import Client, Clock, Resource
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

PERMISSIONS = (_SECRETS.permission("get", "list", "create", "delete"),)
"""The permissions of a SecretsManager."""


class SecretsManager:
    """Key pairs of one owner in one namespace; for `GenericControlPlane.secrets_manager`.

    `identity` distinguishes its Secrets from those of other managers in the namespace: the
    extension's name. Raises ApiError from every method.
    """

    def __init__(self, client: Client, namespace: str, identity: str, clock: Clock) -> None:
        self._client = client
        self._namespace = namespace
        self._identity = identity
        self._clock = clock
        self._wanted: set[str] = set()

    def ensure(self, configs: Iterable[Config], /) -> dict[str, Issued]:
        """Create missing key pairs; return the current ones, by their config's name.

        Raises ConfigurationError for a certificate without its authority in `configs`, and for
        duplicate names; RequeueAfter if another process created the same Secret meanwhile.
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
        """Delete this manager's Secrets that no `ensure` call of this instance requested.

        Without any call of `ensure`, delete all of them.
        """
        for kept in self._kept():
            if kept.secret_name not in self._wanted:
                with suppress(NotFound, Conflict):
                    self._client.delete(_SECRETS, kept.secret_name, self._namespace, uid=kept.uid)

    def _kept(self) -> list[Kept]:
        selector = f"{'='.join(MANAGED_BY)},{IDENTITY}={self._identity}"
        found = self._client.list(_SECRETS, self._namespace, label_selector=selector)
        return [kept for secret in found if (kept := read(secret)) is not None]

    def _authorities(self, config: Authority, kept: Sequence[Kept]) -> list[Kept]:
        """Return the current authority, followed by the former one while it is trusted."""
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
        """Return a name that differs at each time: no Secret name is reused for another key."""
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
                _CHANGED, f"Secret {self._namespace}/{secret_name} was created concurrently"
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
    """Return the former authority for servers, if any: their clients may not know the new one."""
    return trusted[-1] if config.usage is not Usage.CLIENT else trusted[0]


def _issued(current: Kept, trusted: Sequence[Kept]) -> Issued:
    bundle = b"".join(one.pair.certificate for one in trusted)
    return Issued(kept=current, bundle=bundle)


def _check(configs: Sequence[Config]) -> None:
    names = [config.name for config in configs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"secret names are not unique: {', '.join(twice)}; rename one")
    authorities = {config.name for config in configs if isinstance(config, Authority)}
    for config in configs:
        if isinstance(config, Certificate) and config.authority not in authorities:
            raise ConfigurationError(
                f"certificate {config.name}: authority {config.authority!r} not found; "
                "pass its Authority in the same list"
            )

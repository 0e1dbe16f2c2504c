"""SecretsManager: creates the required credentials, renews them, and deletes unused ones.

`ensure` is the whole flow: first the credentials that stand for themselves, then the certificates
that their authorities sign. A credential is replaced when its configuration changes, when 80 % of
its validity have passed or less than 10 days are left, when it is not valid yet, when the authority
for signing has changed, and when a rotation was requested. Time counts once the clock is trusted;
until then, no former credential is deleted. A Secret whose creation was not acknowledged is found
again by its labels. Of two that were created concurrently the newer one is used, and `cleanup`
deletes the other.

Rotation (Gardener documentation, "Credentials Rotation"): until the rotation is completing, the old
credential is kept beside the new one. The old authority signs for servers, clients get their
certificate from the new one, and the bundle has both. Completing removes the old one. A credential
that was renewed because of its age is kept for another 24 hours.

Take-over: a credential that Gardener's own secrets manager created for the same identity is used
until the next rotation, so that no client loses trust. Certificates are issued anew. Without a
rotation, the one that the newest Secret was created for counts, as in Gardener's secrets manager.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from actuator.errors import AlreadyExists, ConfigurationError, Conflict, NotFound, RequeueAfter
from actuator.interface import SECRETS, Client, Clock
from generic.kube.certificates import SKEW, read_pair, x509
from generic.kube.clock import eventual_now, trusted_now
from generic.library.secrets.config import (
    CHECKSUM_DIGITS,
    Certificate,
    Config,
    Independent,
    Usage,
    check,
    checksum_of,
)
from generic.library.secrets.kept import BUNDLE, IDENTITY, MANAGED_BY, Issued, Kept, read

_LEFT = timedelta(days=10)
_OVERLAP = timedelta(hours=24)
_OVER = 0.8
_CHANGED = 1.0

PERMISSIONS = (SECRETS.permission("get", "list", "create", "delete"),)
"""The permissions of a SecretsManager."""


class SecretsManager:
    """Credentials of one owner in one namespace; for `GenericControlPlane.secrets_manager`.

    `client` selects the cluster: the seed's, or the garden's for Secrets there. `identity`
    distinguishes its Secrets from those of other managers in the namespace: the extension's name.
    `persist` is for a shoot's namespace: Gardener takes all but certificates along to another seed.
    Raises ApiError from every method.
    """

    def __init__(
        self, client: Client, namespace: str, identity: str, clock: Clock, *, persist: bool = True
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._identity = identity
        self._clock = clock
        self._persist = persist
        self._wanted: set[str] = set()

    def ensure(self, configs: Iterable[Config], /) -> dict[str, Issued]:
        """Create missing credentials; return the current ones, by their config's name.

        Raises ConfigurationError for a config that cannot work, such as a certificate without its
        authority in `configs`; RequeueAfter if another process created the same Secret meanwhile.
        """
        wanted = list(configs)
        check(wanted)
        kept = self._kept()
        rotated = {
            config.name: self._rotated(config, kept)
            for config in wanted
            if not isinstance(config, Certificate)
        }
        bundles = {name: self._bundle(name, trusted, kept) for name, trusted in rotated.items()}
        issued: dict[str, Issued] = {}
        for config in wanted:
            if isinstance(config, Certificate):
                trusted = rotated[config.authority]
                bundle = bundles[config.authority]
                # For servers the former authority: their clients may not know the new one.
                signer = trusted[0] if config.usage is Usage.CLIENT else trusted[:2][-1]
                current = self._certificate(config, signer, kept)
            else:
                trusted = rotated[config.name]
                bundle = bundles[config.name]
                current = trusted[0]
            issued[config.name] = Issued(kept=current, trusted=trusted, bundle_secret_name=bundle)
        return issued

    def cleanup(self) -> None:
        """Delete this manager's Secrets that no `ensure` call of this instance requested.

        Without any call of `ensure`, delete all of them.
        """
        for kept in self._kept():
            if kept.secret_name not in self._wanted:
                with suppress(NotFound, Conflict):
                    self._client.delete(SECRETS, kept.secret_name, self._namespace, uid=kept.uid)

    def _kept(self) -> list[Kept]:
        """Return the newest first."""
        selector = f"{'='.join(MANAGED_BY)},{IDENTITY}={self._identity}"
        found = self._client.list(SECRETS, self._namespace, label_selector=selector)
        kept = [kept for secret in found if (kept := read(secret)) is not None]
        return sorted(kept, key=lambda k: k.issued, reverse=True)

    def _rotated(self, config: Independent, kept: Sequence[Kept]) -> list[Kept]:
        """Return the current credential, followed by the former one while it is accepted."""
        rotation = config.rotation
        checksum = checksum_of(config)
        mine = [k for k in kept if k.name == config.name]
        stamp = rotation.stamp or next((k.rotated for k in mine), "")
        fits = [k for k in mine if k.checksum == checksum or k.made_by_gardener]
        current = self._usable([k for k in fits if k.rotated == stamp])
        if current is None:
            name = self._new_name(config, stamp)
            data = config.generate(name, self._clock.now())
            current = self._create(
                config.name, name, checksum, data, rotated=stamp, validity=config.validity
            )
        others = [
            k
            for k in mine
            if k is not current and (k.rotated == current.rotated or rotation.keeps_old)
        ]
        # Those of this rotation first: a wrong clock may have dated an older one later.
        others.sort(key=lambda k: k.rotated != current.rotated)
        former = [k for k in others if self._is_accepted(k, current)][:1]
        if trusted_now(self._clock) is None:  # a wrong clock deletes nothing, and ends no trust
            self._wanted |= {k.secret_name for k in others}
            former += [k for k in fits if k in others and k not in former]
        trusted = [current, *former]
        self._wanted |= {item.secret_name for item in trusted}
        return trusted

    def _usable(self, fits: Sequence[Kept]) -> Kept | None:
        """Return the newest that is valid and not old; None if another one has to be created."""
        now = eventual_now(self._clock)  # a renewal waits for the clock
        return next((k for k in fits if now is None or not _is_old(k, now)), None)

    def _is_accepted(self, former: Kept, current: Kept) -> bool:
        """Whether a former credential is kept for now: by a rotation, or after a renewal."""
        now = self._clock.now()
        if former.valid_until is not None and not former.issued - SKEW <= now < former.valid_until:
            return False
        is_renewed = _is_old(former, now) and now < current.issued + _OVERLAP
        return former.rotated != current.rotated or is_renewed

    def _certificate(self, config: Certificate, authority: Kept, kept: Sequence[Kept]) -> Kept:
        checksum = checksum_of(config, authority.secret_name)
        fits = [k for k in kept if (k.name, k.checksum) == (config.name, checksum)]
        current = self._usable(fits)
        if current is None:
            name = self._new_name(config, authority.secret_name)
            self._check_authority(authority)
            pair = config.sign(authority.pair, self._clock.now())
            data = {"tls.crt": pair.certificate, "tls.key": pair.key}
            current = self._create(config.name, name, checksum, data)
        self._wanted.add(current.secret_name)
        return current

    def _check_authority(self, authority: Kept) -> None:
        try:
            read_pair(authority.pair)
        except ValueError as error:
            raise ConfigurationError(
                f"Secret {self._namespace}/{authority.secret_name}: cannot sign with ca.crt and "
                f"ca.key: {error}; rotate the authority, or delete the Secret to replace it"
            ) from error

    def _bundle(self, name: str, trusted: Sequence[Kept], kept: Sequence[Kept]) -> str:
        """Return the name of the Secret with the bundle of these credentials, or ""."""
        data = dict.fromkeys(trusted[0].bundled, Issued(kept=trusted[0], trusted=trusted).bundle)
        if not data:
            return ""
        name += BUNDLE
        found = next((k for k in kept if (k.name, k.data) == (name, data)), None)
        if found is None:
            of_manager = self._identity.encode() + b"".join(data.values())
            checksum = hashlib.sha256(of_manager).hexdigest()[:CHECKSUM_DIGITS]
            found = self._create(name, f"{name}-{checksum}", checksum, data)
        self._wanted.add(found.secret_name)
        return found.secret_name

    def _new_name(self, config: Config, made_for: str) -> str:
        """Return a name that differs at each time: no Secret name is reused for another key."""
        moment = str(int(self._clock.now().timestamp()))
        return f"{config.name}-{checksum_of(config, self._identity, made_for, moment)}"

    def _create(
        self,
        name: str,
        secret_name: str,
        checksum: str,
        data: Mapping[str, bytes],
        *,
        rotated: str = "",
        validity: timedelta | None = None,
    ) -> Kept:
        now = self._clock.now()
        certificate = data.get("ca.crt") or data.get("tls.crt")
        end = now + validity if validity else None
        if certificate:  # it ends with its authority
            end = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
        made = Kept(
            name=name,
            checksum=checksum,
            rotated=rotated,
            issued=now,
            valid_until=end,
            data=data,
            secret_name=secret_name,
        )
        try:
            manifest = made.manifest(self._namespace, self._identity, persist=self._persist)
            self._client.create(SECRETS, manifest)
        except AlreadyExists as error:
            raise RequeueAfter(
                _CHANGED, f"Secret {self._namespace}/{secret_name} was created concurrently"
            ) from error
        return made


def _is_old(kept: Kept, now: datetime) -> bool:
    """Whether it has to be replaced by now, or its certificate is not valid yet."""
    if kept.valid_until is None:
        return False
    lifetime = kept.valid_until - kept.issued
    renewal = kept.issued + _OVER * lifetime
    # of a short credential the last days do not count: it would always be old
    last = min(renewal, kept.valid_until - _LEFT) if lifetime > 2 * _LEFT else renewal
    return not kept.issued - SKEW <= now < last

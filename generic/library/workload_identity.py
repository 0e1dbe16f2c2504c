"""Workload identity: credentials that are a short-lived token in place of a key.

gardenlet replaces the token in the Secret long before it expires, so reading the Secret again
refreshes it (Gardener documentation, GEP-26). Keep neither the token nor what a provider returns
for it beyond one call, and write them to no status, event or log.
"""

from datetime import datetime

import attrs

from actuator.codec import read_json
from actuator.errors import ConfigurationError, CredentialsError, RequeueAfter
from actuator.interface import Context
from actuator.meta import Base64, Raw
from generic.kube.workload_identity import CONFIG, PREFIX, TOKEN, is_workload_identity, token_expiry

__all__ = ["WorkloadIdentity", "read_workload_identity"]


@attrs.frozen
class WorkloadIdentity:
    """The content of a Secret, for one call; `token` is for the provider of that type."""

    ctx: Context = attrs.field(repr=False)
    provider: str
    config: Raw
    """The WorkloadIdentity's `spec.targetSystem.providerConfig`."""
    token: str = attrs.field(repr=False)
    expires: datetime
    _name: str
    _namespace: str
    _where: str

    def setting(self, name: str) -> str:
        """Return a text of the configuration. Raises ConfigurationError if there is none."""
        value = self.config.get(name)
        if not isinstance(value, str) or not value:
            raise _misconfigured(self._where, f"{name} is no text")
        return value

    def refresh(self) -> "WorkloadIdentity":
        """Read the Secret again. Raises as `read_workload_identity` and `Context.secret`."""
        secret = self.ctx.secret(self._name, self._namespace)
        found = read_workload_identity(self.ctx, secret, self._where)
        if found is None:
            raise RequeueAfter(0, f"{self._where} has other credentials now")
        return found


def read_workload_identity(ctx: Context, secret: Raw, where: str) -> WorkloadIdentity | None:
    """Return the workload identity in a Secret; None for a Secret with other credentials.

    Errors name `where` ("Infrastructure a/b: spec.secretRef: Secret a/cloudprovider"). Raises
    ConfigurationError for a wrong configuration, and CredentialsError if the token is missing or
    expired.
    """
    if not is_workload_identity(secret):
        return None
    meta = secret["metadata"]
    data = secret.get("data") or {}
    expires = token_expiry(secret)
    if expires is None or expires <= ctx.clock.now():
        state = "no JSON Web Token" if data.get(TOKEN) else "no token yet"
        raise CredentialsError(
            f"{where}, data key {TOKEN}: "
            f"{f'it expired at {expires:%FT%TZ}' if expires else state}; "
            "gardenlet writes it, so check its log and the WorkloadIdentity"
        )
    try:
        config = read_json(Base64(data.get(CONFIG) or "").decode_bytes())
    except ValueError:
        config = None
    if not isinstance(config, dict):
        raise _misconfigured(where, "no JSON object")
    provider = meta["labels"].get(f"{PREFIX}/provider", "")
    token = Base64(data[TOKEN]).decode_bytes().decode()
    name = meta["name"]
    namespace = meta["namespace"]
    return WorkloadIdentity(ctx, provider, config, token, expires, name, namespace, where)


def _misconfigured(where: str, problem: str) -> ConfigurationError:
    remedy = "set it in spec.targetSystem.providerConfig of the WorkloadIdentity"
    return ConfigurationError(f"{where}, data key {CONFIG}: {problem}; {remedy}")

"""The AWS credentials of a shoot, read from the Secret in spec.secretRef.

No message, log line or repr contains any part of the Secret.
"""

from binascii import Error as Base64Error

import attrs

from actuator import ConfigurationError, Context, Permission
from actuator.errors import NotFound
from actuator.meta import Base64, Raw, SecretReference
from generic.library.workload_identity import WorkloadIdentity, workload_identity

CLOUD_PROVIDER = "cloudprovider"
"""The name of the Secret with the shoot's credentials in its namespace of the seed."""

ACCESS_KEY_ID = "accessKeyID"
SECRET_ACCESS_KEY = "secretAccessKey"  # noqa: S105 - the name of a key, no password
"""Data keys of a `cloudprovider` Secret, as in Gardener's AWS extension."""

READ_SECRETS = Permission(api_version="v1", resource="secrets", verbs=["get"])


@attrs.frozen
class Credentials:
    """An access key of an IAM user, or with a token the temporary one of a role."""

    access_key_id: str = attrs.field(repr=False)
    secret_access_key: str = attrs.field(repr=False)
    session_token: str | None = attrs.field(default=None, repr=False)


def read_credentials(
    ctx: Context, ref: SecretReference, wanted_by: str
) -> Credentials | WorkloadIdentity:
    """Return the credentials in the Secret `ref`; errors name `wanted_by` ("Infrastructure a/b").

    If the Secret is gone, a deletion gets the credentials that were read last (`Context.secret`).
    Raises ConfigurationError if the Secret, or a key of it, is missing or unusable; ActuatorError
    if the token of a workload identity is missing or expired; ApiError.
    """
    where = f"{wanted_by}: spec.secretRef: Secret {ref.namespace}/{ref.name}"
    try:
        secret = ctx.secret(ref.name, ref.namespace)
    except NotFound as error:
        raise ConfigurationError(
            f"{where} does not exist; create it with the data keys "
            f"{ACCESS_KEY_ID} and {SECRET_ACCESS_KEY}"
        ) from error
    return workload_identity(ctx, secret, where) or Credentials(
        _read(secret, ACCESS_KEY_ID, where), _read(secret, SECRET_ACCESS_KEY, where)
    )


def _read(secret: Raw, key: str, where: str) -> str:
    value = (secret.get("data") or {}).get(key)
    if not value:
        raise ConfigurationError(f"{where} has no data key {key}; add it")
    try:
        text = Base64(value).decode_bytes().decode("ascii")
    except (Base64Error, ValueError):
        text = ""
    if not text.isprintable() or text != text.strip() or not text:
        # `from None`: a decoding error quotes its input
        raise ConfigurationError(
            f"{where}, data key {key}: no plain text (often a newline at its end); "
            "write the key again, without spaces or newlines around it"
        ) from None
    return text

"""OnAws: the common base of this extension's actuators, with access to the object's account.

No message, log line or repr contains any part of the Secret with the credentials.
"""

import os
from binascii import Error as Base64Error
from typing import Any

from actuator import (
    Base64,
    Cluster,
    ConfigurationError,
    Context,
    ExternalResource,
    NotFound,
    Object,
    Raw,
    Resource,
    credentials_of,
)
from extensions.aws.cloud import GLOBAL, Cloud, Clouds, Credentials, Service
from extensions.aws.verification import still_exists
from generic.library import WorkloadIdentity, read_workload_identity

CLOUD_PROVIDER = "cloudprovider"
"""The name of the Secret with the shoot's credentials in its namespace of the seed."""

ACCESS_KEY_ID = "accessKeyID"
SECRET_ACCESS_KEY = "secretAccessKey"  # noqa: S105 - the name of a key, no password
"""Data keys of a `cloudprovider` Secret, as in Gardener's AWS extension."""

READ_SECRETS = Resource("v1", "secrets").permission("get")


class OnAws:
    """A base class beside `Actuator`; see `Clouds` for `endpoint_url`."""

    def __init__(self, endpoint_url: str | None = None) -> None:
        self._clouds = Clouds(endpoint_url)

    def cloud_account(self, ctx: Context, obj: Any, cluster: Cluster, /) -> str:
        """Return the account that STS reports; each user may ask (IAM, "GetCallerIdentity")."""
        region = getattr(obj.spec, "region", "") or cluster.region or GLOBAL
        return caller_account(self._open(ctx, obj, region, "sts"))

    def verifying_account(self) -> str:
        """Return the account of the credentials that botocore finds, in their partition."""
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or GLOBAL
        return caller_account(self._clouds.open(None, region, lambda: None, "sts"))

    def still_exists(self, resource: ExternalResource, /) -> bool | None:
        """Look up the resource by its id, or by its tags."""
        return still_exists(self._clouds, resource)

    def _open(self, ctx: Context, obj: Object, region: str, service: Service = "ec2") -> Cloud:
        """Return a client for the account whose credentials are in the Secret that `obj` refers to.

        Raises ConfigurationError, ActuatorError and ApiError.
        """
        credentials = read_credentials(ctx, obj)
        return self._clouds.open(credentials, region, ctx.check, service)


def caller_account(sts: Cloud) -> str:
    """Return the account of a client's credentials. Raises ActuatorError."""
    return str(sts.request("get_caller_identity")["Account"])


def read_credentials(ctx: Context, obj: Object) -> Credentials | WorkloadIdentity:
    """Return the credentials in the Secret that the object refers to; errors name the object.

    If the Secret is gone, a deletion gets the credentials that were read last (`Context.secret`).
    Raises ConfigurationError if the Secret, or a key of it, is missing or unusable; ActuatorError
    if the token of a workload identity is missing or expired; ApiError.
    """
    ref = credentials_of(obj)
    where = f"{obj.KIND.name} {obj.key}: spec.secretRef: Secret {ref.namespace}/{ref.name}"
    try:
        secret = ctx.secret(ref.name, ref.namespace)
    except NotFound as error:
        raise ConfigurationError(
            f"{where} does not exist; create it with the data keys "
            f"{ACCESS_KEY_ID} and {SECRET_ACCESS_KEY}"
        ) from error
    return read_workload_identity(ctx, secret, where) or Credentials(
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

"""The Secret of a workload identity: how it is recognized, and when its token expires.

gardenlet writes the token, a JSON Web Token (Gardener documentation, "gardenlet",
"TokenRequestorWorkloadIdentity"). Not here: its use (`generic.library.workload_identity`).
"""

import base64
from datetime import UTC, datetime

from actuator.codec import read_json
from actuator.meta import Base64, Raw

CONFIG = "config"
TOKEN = "token"  # noqa: S105 - a key in a Secret
"""The data keys: the provider's configuration from the WorkloadIdentity, and the token."""

PURPOSE = ("security.gardener.cloud/purpose", "workload-identity-token-requestor")
PREFIX = "workloadidentity.security.gardener.cloud"


def is_workload_identity(secret: Raw) -> bool:
    """Return whether a token is requested for this Secret."""
    key, value = PURPOSE
    return bool((secret["metadata"].get("labels") or {}).get(key) == value)


def token_expiry(secret: Raw) -> datetime | None:
    """Return when the token expires, None if that is unknown; its signature is not verified.

    A token that is not ASCII is no JSON Web Token, so its expiry is unknown.
    """
    try:
        token = Base64((secret.get("data") or {})[TOKEN]).decode_bytes().decode("ascii")
        payload = token.split(".")[1]
        claims = read_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError):
        return None

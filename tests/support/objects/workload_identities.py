"""Secrets of workload identities, as gardenlet writes them."""

from __future__ import annotations

import base64
import json
import secrets
from datetime import datetime
from typing import Any

from actuator.meta import Base64, Raw

ROLE = "arn:aws:iam::123456789012:role/"


def token(expires: datetime, **claims: Any) -> str:
    """A token without a valid signature; each one differs."""
    payload = {"exp": int(expires.timestamp()), "jti": secrets.token_hex(8)} | claims
    parts = ({"alg": "RS256"}, payload, "signature")
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )


def identity_secret(namespace: str, text: str = "", config: Any = None, **data: str) -> Raw:
    """The `cloudprovider` Secret; without a text there is no token yet."""
    given = {"config": json.dumps({"roleARN": ROLE + namespace} if config is None else config)}
    given |= {"token": text} if text else {}
    prefix = "workloadidentity.security.gardener.cloud"
    meta = {
        "name": "cloudprovider",
        "namespace": namespace,
        "labels": {
            "security.gardener.cloud/purpose": "workload-identity-token-requestor",
            f"{prefix}/provider": "aws",
        },
        "annotations": {f"{prefix}/name": "banana", f"{prefix}/namespace": "garden-local"},
    }
    encoded = {key: Base64.encode_bytes(value.encode()) for key, value in (given | data).items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded}

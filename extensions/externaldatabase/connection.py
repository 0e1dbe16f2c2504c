"""The connection Secret: beside its ExternalDatabase, owned by it, and deleted with it.

With the deletion policy Retain it stays, since nobody else knows the password of the login.

It is created before the login, so that a crash between both changes no password: the login always
has the password in the Secret.
"""

import secrets
from contextlib import suppress

import attrs

from actuator import (
    ActuatorError,
    Base64,
    Context,
    ErrorCode,
    Raw,
    RequeueAfter,
    Resource,
    is_owned_by,
    owner_permission,
    with_owner,
)
from extensions.externaldatabase.kind import ExternalDatabase
from extensions.externaldatabase.server import Claim, DatabaseServer
from generic.library import find, manifest, write

SECRETS = Resource("v1", "secrets")
PERMISSIONS = (
    SECRETS.permission("get", "create", "patch"),
    owner_permission(ExternalDatabase.KIND),
)
_LOOK_AGAIN = 2.0


def secret_name(obj: ExternalDatabase) -> str:
    """Return the name of the object's connection Secret, in its namespace."""
    return f"{obj.metadata.name}-connection"


def ensure_connection(
    ctx: Context, obj: ExternalDatabase, claim: Claim, server: DatabaseServer
) -> str:
    """Create or update the connection Secret; return the password in it.

    Raises ActuatorError if a Secret of that name belongs to others, RequeueAfter if it belongs to a
    deleted object, and ApiError.
    """
    there = find(ctx.client, SECRETS, secret_name(obj), obj.metadata.namespace)
    password = f"{secrets.token_urlsafe(24)}-aA1"  # MySQL's validate_password wants every class
    if there is not None:
        _refuse_foreign(obj, there)
        with suppress(KeyError, TypeError, ValueError):  # missing or unreadable: set a new one
            password = Base64(there["data"]["password"]).decode_bytes().decode() or password
    wanted = _secret(obj, claim, server, password)
    if there is None or there.get("data") != wanted["data"]:
        write(ctx.client, SECRETS, wanted, there)
    return password


def keep_connection(ctx: Context, obj: ExternalDatabase) -> None:
    """Remove the object from the owners of its connection Secret, which stays. Raises ApiError."""
    there = find(ctx.client, SECRETS, secret_name(obj), obj.metadata.namespace)
    if there is None or not is_owned_by(there, obj):
        return
    meta = there["metadata"]
    others = [owner for owner in meta["ownerReferences"] if owner["uid"] != obj.metadata.uid]
    read = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    patch: Raw = {"metadata": {**read, "ownerReferences": others}}
    ctx.client.patch(SECRETS, secret_name(obj), obj.metadata.namespace, patch)


def _refuse_foreign(obj: ExternalDatabase, secret: Raw) -> None:
    if is_owned_by(secret, obj):
        return
    owners = secret["metadata"].get("ownerReferences") or []
    name = f"Secret {obj.metadata.namespace}/{secret_name(obj)}"
    if any(
        (owner["kind"], owner["name"]) == (obj.KIND.name, obj.metadata.name) for owner in owners
    ):
        raise RequeueAfter(_LOOK_AGAIN, f"Waiting for {name} of an earlier object to be collected")
    raise ActuatorError(
        f"{name} exists and has another owner; remove it, or give the {obj.KIND.name} another name",
        codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
    )


def _secret(obj: ExternalDatabase, claim: Claim, server: DatabaseServer, password: str) -> Raw:
    there = attrs.evolve(server.endpoint, user=claim.login, password=password)
    texts = {
        "host": there.host,
        "port": str(there.port),
        "database": claim.database,
        "username": there.user,
        "password": there.password,
        "uri": there.url(server.scheme, claim.database),
    }
    if there.ca:
        texts["ca.crt"] = there.ca
    data = {key: Base64.encode_bytes(text.encode()) for key, text in texts.items()}
    where = secret_name(obj), obj.metadata.namespace
    return with_owner(manifest("v1", "Secret", *where, type="Opaque", data=data), obj)

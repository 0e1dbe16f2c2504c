"""The connection Secret: beside its ExternalDatabase, owned by it, and deleted with it.

It is created before the login, so that a crash between both changes no password: the login always
has the password in the Secret.
"""

import base64
import secrets

import attrs

from actuator import ActuatorError, Context, ErrorCode, RequeueAfter, Resource
from actuator.meta import Raw
from actuator.ownership import is_owned_by
from extensions.externaldatabase.endpoint import Endpoint
from extensions.externaldatabase.kind import ExternalDatabase
from extensions.externaldatabase.server import Claim, Server
from generic.library.lookup import find
from generic.library.manifests import manifest

SECRETS = Resource("v1", "secrets")
PERMISSIONS = (SECRETS.permission("get", "create", "patch"),)
_LOOK_AGAIN = 2.0


def secret_name(obj: ExternalDatabase) -> str:
    """Return the name of the object's connection Secret, in its namespace."""
    return f"{obj.metadata.name}-connection"


def ensure_connection(ctx: Context, obj: ExternalDatabase, claim: Claim, server: Server) -> str:
    """Create or update the connection Secret; return the password in it.

    Raises ActuatorError if a Secret of that name belongs to others, RequeueAfter if it belongs to a
    deleted object, and ApiError.
    """
    there = find(ctx.client, SECRETS, secret_name(obj), obj.metadata.namespace)
    password = f"{secrets.token_urlsafe(24)}-aA1"  # MySQL's validate_password wants every class
    if there is not None:
        _refuse_foreign(obj, there)
        password = _read(there, "password") or password
    wanted = _secret(obj, claim, server, password)
    if there is None:
        ctx.client.create(SECRETS, wanted)
    elif there.get("data") != wanted["data"]:
        ctx.client.apply(SECRETS, wanted)
    return password


def _refuse_foreign(obj: ExternalDatabase, secret: Raw) -> None:
    if is_owned_by(secret, obj):
        return
    owners = secret["metadata"].get("ownerReferences") or []
    name = f"Secret {obj.metadata.namespace}/{secret_name(obj)}"
    if any((one["kind"], one["name"]) == (obj.KIND.name, obj.metadata.name) for one in owners):
        raise RequeueAfter(_LOOK_AGAIN, f"Waiting for {name} of an earlier object to be collected")
    raise ActuatorError(
        f"{name} exists and has another owner; remove it, or give the {obj.KIND.name} another name",
        codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
    )


def _secret(obj: ExternalDatabase, claim: Claim, server: Server, password: str) -> Raw:
    there: Endpoint = attrs.evolve(server.endpoint, user=claim.login, password=password)
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
    owner = {
        "apiVersion": obj.KIND.api_version,
        "kind": obj.KIND.name,
        "name": obj.metadata.name,
        "uid": obj.metadata.uid,
        "controller": True,
    }
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    where = secret_name(obj), obj.metadata.namespace
    secret = manifest("v1", "Secret", *where, type="Opaque", data=data)
    secret["metadata"]["ownerReferences"] = [owner]
    return secret


def _read(secret: Raw, key: str) -> str:
    """Return the value of a key in the Secret; "" if it is missing or unreadable."""
    try:
        return base64.b64decode((secret.get("data") or {}).get(key, "")).decode()
    except ValueError:
        return ""

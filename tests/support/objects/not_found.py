"""The bodies of answers with status 404 that are not about the requested object.

The object is the Infrastructure "infra", which exists.
"""

from __future__ import annotations

import json

GROUP = "extensions.gardener.cloud"
NAMED = {"group": GROUP, "kind": "infrastructures", "name": "infra"}
DENIED = 'admission webhook "guard.example.org" denied the request: no'


def status(details: object, message: str = "not found", reason: str = "NotFound") -> bytes:
    """A Status with these details."""
    text = {"kind": "Status", "reason": reason, "message": message, "details": details}
    return json.dumps(text).encode()


NOT_FOUND = {
    "namespace": status({"kind": "namespaces", "name": "a"}),
    "another object": status({**NAMED, "name": "other"}),
    "another kind": status({**NAMED, "kind": "workers"}),
    "another group": status({**NAMED, "group": "example.org"}),
    "core": status({"kind": "infrastructures", "name": "infra"}),
    "its kind alone": status({"group": GROUP, "kind": "infrastructures"}),
    "no details": status({}),
    "null": status(None),
    "wrong types": status({"group": 3, "kind": ["infrastructures"], "name": {"a": 1}}),
    "a list": status(["infra"]),
    "a long name": status({**NAMED, "name": "infra" * 10_000}),
    "webhook": status(NAMED, DENIED),
    "page": b"404 page not found\n",
    "html": b"<html>infrastructures.extensions.gardener.cloud infra not found</html>",
    "JSON of another API": b'{"error": "infra not found"}',
    "empty": b"",
    "null alone": b"null",
}

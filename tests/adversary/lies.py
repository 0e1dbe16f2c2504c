"""Wrong answers of an API server about one Infrastructure, and the reason that each has to get.

Pure: everything follows from the random numbers.
"""

from __future__ import annotations

import json
import random

import attrs

from tests.support.cluster.fault_proxy import Answer

GROUP = "extensions.gardener.cloud"
_WEBHOOK = 'admission webhook "guard.example.org" denied the request: not today'
_FORBIDDEN = (
    ("exceeded quota: {}, requested: count/secrets=1, used: 0, limited: 0", "QuotaExceeded"),
    ("failed quota: {}: must specify limits.cpu", "QuotaExceeded"),
    ("status unknown for quota: {}, resources: count/secrets", "QuotaExceeded"),
    (
        "unable to create new content in namespace {} because it is being terminated",
        "NamespaceTerminating",
    ),
    (
        "ValidatingAdmissionPolicy '{}' with binding 'b' denied request: exceeded quota: x",
        "PolicyDenied",
    ),
    ('violates PodSecurity "restricted:latest": {}', "PolicyDenied"),
    ("maximum cpu usage per Container is 1, but limit is {}", "AdmissionDenied"),
    ('User "{}" cannot patch resource "infrastructures" in API group "x"', "Forbidden"),
    ('User "system:anonymous" cannot patch resource "{}"', "Unauthorized"),
    ("cannot set blockOwnerDeletion if an ownerReference refers to {}", "Forbidden"),
)
_OTHERS = (
    (401, "Unauthorized", "Unauthorized", "Unauthorized"),
    (409, "Conflict", "Operation cannot be fulfilled", "Error"),
    (409, "AlreadyExists", _WEBHOOK, "WebhookDenied"),
    (410, "Expired", "too old resource version", "Error"),
    (422, "Invalid", "the field is immutable", "RefusedByAPIServer"),
    (422, "Invalid", 'Invalid value: "x is forbidden: exceeded quota: y"', "RefusedByAPIServer"),
    (500, "InternalError", 'failed calling webhook "guard.example.org": EOF', "WebhookDenied"),
    (500, "InternalError", "etcdserver: request timed out", "APIServerUnavailable"),
    (503, "ServiceUnavailable", "not yet", "APIServerUnavailable"),
)
_PAGES = (b"", b" ", b"404 page not found\n", b"<html>no</html>", b"null", b"[]", b'{"error": 1}')


@attrs.frozen
class Lie:
    """One wrong answer."""

    answer: Answer
    reason: str
    """The reason of a deletion that it blocks."""

    def __str__(self) -> str:
        return f"{self.answer.status} {self.answer.body[:200]!r}"


def lie_of(rng: random.Random, namespace: str, name: str) -> Lie:
    """A wrong answer about that object."""
    named = {"group": GROUP, "kind": "infrastructures", "name": name}
    sort = rng.choice(("404", "404", "403", "403", "page", "other"))
    if sort == "page":
        return Lie(Answer(rng.choice((403, 404)), rng.choice(_PAGES) or b" "), "UnexpectedAnswer")
    if sort == "403":
        text, reason = rng.choice(_FORBIDDEN)
        filled = text.format(rng.choice(("a", "eve", "a-b.c", "x" * 200)))
        message = f'infrastructures.{GROUP} "{name}" is forbidden: {filled}'
        return Lie(_status(403, "Forbidden", message, named), reason)
    if sort == "404":
        return _missing(rng, namespace, named)
    code, word, message, reason = rng.choice(_OTHERS)
    return Lie(_status(code, word, message, named), reason)


def _missing(rng: random.Random, namespace: str, named: dict[str, str]) -> Lie:
    details, reason = rng.choice(
        (
            ({"kind": "namespaces", "name": namespace}, "NamespaceMissing"),
            ({**named, "name": f"{named['name']}x"}, "UnexpectedAnswer"),
            ({**named, "name": namespace}, "UnexpectedAnswer"),
            ({**named, "kind": rng.choice(("workers", "Infrastructure"))}, "UnexpectedAnswer"),
            ({**named, "group": rng.choice(("", "example.org"))}, "UnexpectedAnswer"),
            ({"group": GROUP, "kind": "infrastructures"}, "UnexpectedAnswer"),
            (rng.choice(({}, None, [], "x", 3, {"name": {}, "kind": []})), "UnexpectedAnswer"),
            (named, "WebhookDenied"),
        )
    )
    message = _WEBHOOK if reason == "WebhookDenied" else "it was not found"
    return Lie(_status(404, "NotFound", message, details), reason)


def _status(code: int, reason: str, message: str, details: object) -> Answer:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    body = {**status, "reason": reason, "message": message, "details": details}
    return Answer(code, json.dumps(body).encode())

"""Faults on the way to the API server, as data: the requests they hit, and their effect.

`FaultyCall` describes a request in the terms of RBAC (Kubernetes documentation, "Authorization
Overview", request verbs). Not here: the implementation of the effects (relay.py).
"""

import json
from enum import StrEnum
from urllib.parse import parse_qs, unquote, urlsplit

import attrs

from hack.faults.rules import ANY, Rule, fits

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
_OF_MANY = {"delete": "deletecollection", "get": "list"}
_OF_NAMESPACES = ("status", "finalize")
_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Effect(StrEnum):
    """The effect of a fault on a request, or on a line of a watch."""

    CUT = "cut"
    """The connection is closed; the request never reaches the API server."""
    DROP_ANSWER = "drop-answer"
    """The request is carried out, then the connection is closed without an answer."""
    DELAY = "delay"
    """The request is forwarded after `seconds`, also if the client gave up meanwhile."""
    STALL = "stall"
    """The request is neither forwarded nor answered, for `seconds` (0: until removed)."""
    ANSWER = "answer"
    """The proxy answers with `status` (and `retry_after`); nothing reaches the API server."""
    CUT_STREAM = "cut-stream"
    """A watch ends in the middle of the stream, and the line is lost."""
    DELAY_LINE = "delay-line"
    """A line of a watch, and all later lines, are delayed by `seconds`."""
    SILENCE = "silence"
    """A watch stays open without further lines, for `seconds` (0: until removed)."""
    STREAM_ERROR = "stream-error"
    """In place of a line, a watch sends an ERROR event with `status`, and ends."""

    @property
    def is_of_lines(self) -> bool:
        """Whether the effect hits lines of a watch, including a watch that is already open."""
        return self in _OF_LINES


_OF_LINES = (Effect.CUT_STREAM, Effect.DELAY_LINE, Effect.SILENCE, Effect.STREAM_ERROR)


@attrs.frozen
class FaultyCall:
    """One request: `resource` is plural.group, or "" for a non-resource URL (then only `name`)."""

    verb: str
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @classmethod
    def parse(cls, method: str, target: str) -> "FaultyCall":
        """Parse an HTTP method and a request target."""
        url = urlsplit(target)
        verb = _VERBS.get(method, method.lower())
        steps = [unquote(step) for step in url.path.strip("/").split("/")]
        if steps[0] == "api" and len(steps) > 2:
            group = ""
            steps = steps[2:]
        elif steps[0] == "apis" and len(steps) > 3:
            group = steps[1]
            steps = steps[3:]
        else:
            return cls(verb, name=url.path)
        namespace = ""
        if steps[0] == "namespaces" and len(steps) > 2 and steps[2] not in _OF_NAMESPACES:
            namespace = steps[1]
            steps = steps[2:]
        plural, name, subresource = (*steps, "", "")[:3]
        if not name:
            watches = parse_qs(url.query).get("watch", ["false"])[-1] in ("true", "1")
            verb = "watch" if watches and verb == "get" else _OF_MANY.get(verb, verb)
        return cls(verb, f"{plural}.{group}" if group else plural, namespace, name, subresource)


@attrs.frozen(kw_only=True)
class Fault(Rule):
    """A fault between a client and the API server.

    `verbs` as in a ClusterRole, all if empty. `resource` ("infrastructures.*"), `namespace`,
    `name` and `subresource` ("" for the object itself) are shell-style patterns. If the effect
    hits lines of a watch, `after` and `times` count lines, bookmarks included.
    """

    effect: Effect = attrs.field(converter=Effect)
    verbs: list[str] = attrs.field(factory=list)
    resource: str = ANY
    namespace: str = ANY
    name: str = ANY
    subresource: str = ANY
    seconds: float = 0.0
    status: int = 500
    retry_after: int = 0

    def hits(self, call: FaultyCall, *, line: bool = False) -> bool:
        """Return whether the fault matches this request, or a line of this watch."""
        return (
            line == self.effect.is_of_lines
            and (not self.verbs or call.verb in self.verbs)
            and fits(call.resource, self.resource)
            and fits(call.namespace, self.namespace)
            and fits(call.name, self.name)
            and fits(call.subresource, self.subresource)
        )


def body_of(fault: Fault) -> bytes:
    """Return the Status object of an error (Kubernetes API conventions, "Response Status Kind").

    Without a trailing newline.
    """
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"injected fault: {fault.status}",
        "reason": _REASONS.get(fault.status, "Unknown"),
        "code": fault.status,
    }
    if fault.retry_after:
        status["details"] = {"retryAfterSeconds": fault.retry_after}
    return json.dumps(status, separators=(",", ":")).encode()

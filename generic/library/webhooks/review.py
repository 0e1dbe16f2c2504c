"""One AdmissionReview, from bytes to bytes.

The body of a request is untrusted: its depth and its types are checked before a handler sees an
object, and no log contains a value of the object. Not here: the limits of size and time
(`server`).
"""

import base64
import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

import attrs
import msgspec
from msgspec import Struct, field

from actuator.codec import MAX_DEPTH, decode_json, encode, is_deep, plain_json
from actuator.errors import DecodeError
from actuator.interface import Client, FieldProblem
from actuator.meta import Object, Raw
from generic.kube.errorinfo import place
from generic.kube.printable import printable
from generic.library.webhooks.jsonpatch import difference
from generic.library.webhooks.webhook import AdmissionRequest, Denied, Webhook

API_VERSION = "admission.k8s.io/v1"
_MAX_TEXT = 8192
"""Maximum characters of a message."""
_MAX_UID = 128
_MAX_PROBLEMS = 20
_MAX_BYTES = 4 * 2**20
"""Maximum bytes of a patch; the API server stores at most 1.5 MiB."""
_AROUND = 3
"""The levels of a review around the object."""


class InvalidReview(Exception):
    """The body is no AdmissionReview that can be answered."""


class _ReviewedResource(Struct):
    group: str = ""
    version: str = ""
    resource: str = ""


class _User(Struct):
    username: str = ""


class ReviewRequest(Struct, rename="camel"):
    """The request in an AdmissionReview."""

    uid: str
    resource: _ReviewedResource
    operation: str
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    namespace: str = ""
    sub_resource: str = ""
    dry_run: bool | None = None
    user_info: _User = field(default_factory=_User)


class _Review(Struct, rename="camel"):
    api_version: str
    kind: str
    request: ReviewRequest


class _OldMetadata(Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _OldObject(Struct):
    metadata: _OldMetadata = field(default_factory=_OldMetadata)


@attrs.frozen(kw_only=True)
class ReviewAnswer:
    """The answer to a review; `failed` if the webhook itself failed, whatever its policy is."""

    uid: str
    allowed: bool
    patch: Sequence[Raw] = ()
    """JSON that the API server can read."""
    code: int = 403
    message: str = ""
    """For the user; it may contain values of the object."""
    reason: str = ""
    """For the log of a failure: without values of the object."""
    failed: bool = False

    def encode(self) -> bytes:
        """Return the AdmissionReview."""
        response: Raw = {"uid": self.uid, "allowed": self.allowed}
        if not self.allowed:
            response["status"] = {"code": self.code, "message": self.message}
        elif self.message:
            response["warnings"] = [self.message[:256]]
        if self.patch:
            text = json.dumps(self.patch).encode()
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(text).decode()}
        review = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
        return json.dumps(review).encode()


def parse(body: bytes) -> ReviewRequest:
    """Return the request in an AdmissionReview. Raises InvalidReview."""
    if is_deep(body, MAX_DEPTH + _AROUND):
        raise InvalidReview(f"the body has more than {MAX_DEPTH} levels")
    try:
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidReview(f"the body is no AdmissionReview: {printable(str(error))}") from None
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise InvalidReview(f"the body is no AdmissionReview of {API_VERSION}")
    if len(review.request.uid) > _MAX_UID:
        raise InvalidReview(f"the uid has more than {_MAX_UID} characters")
    return review.request


def evaluate(webhook: Webhook, request: ReviewRequest, client: Client) -> ReviewAnswer:
    """Return the webhook's answer; never raises.

    An object under deletion, and an operation that was not declared, is always admitted.
    """
    if request.operation not in webhook.operations or _is_deleting(request.object):
        return ReviewAnswer(uid=request.uid, allowed=True)
    try:
        return _judged(webhook, request, client)
    except BaseException as error:  # the author's code can raise anything, SystemExit as well
        where = f" ({at})" if (at := place(error)) else ""
        return failure(webhook, request.uid, f"the handler raised {type(error).__name__}{where}")


def failure(webhook: Webhook, uid: str, reason: str, detail: str = "") -> ReviewAnswer:
    """Return the answer of a webhook that failed, according to its failure policy.

    `detail` is for the user only: it may contain values of the object.
    """
    ignored = webhook.failure_policy == "Ignore"
    problem = f"{reason}: {detail}" if detail else reason
    text = f"webhook {webhook.name} failed: {problem}"[:_MAX_TEXT]
    return ReviewAnswer(
        uid=uid, allowed=ignored, code=500, message=text, reason=reason, failed=True
    )


def _is_deleting(text: msgspec.Raw) -> bool:
    try:
        return msgspec.json.decode(text, type=_OldObject).metadata.deletion_timestamp is not None
    except msgspec.MsgspecError:
        return False


def _judged(webhook: Webhook, request: ReviewRequest, client: Client) -> ReviewAnswer:
    try:
        return _handled(webhook, request, client)
    except Denied as denied:
        message = printable(str(denied.message))[:_MAX_TEXT]
        if webhook.never_refuses:
            return failure(webhook, request.uid, "it refuses a status", message)
        return ReviewAnswer(uid=request.uid, allowed=False, message=f"{webhook.name}: {message}")
    except DecodeError as error:
        problem = printable(str(error))
        return failure(webhook, request.uid, "cannot read the object", problem)


def _handled(webhook: Webhook, request: ReviewRequest, client: Client) -> ReviewAnswer:
    cls = _class_of(webhook, request.resource)
    given = decode_json(cls, bytes(request.object))
    before = json.dumps(encode(given)) if webhook.mutating else ""  # a copy: it shares no value
    old: Any = request.old_object
    admission = AdmissionRequest(
        operation=request.operation,  # type: ignore[arg-type]  # checked: it is declared
        new=given,
        old=None if bytes(old) == b"null" else decode_json(cls, bytes(old)),
        namespace=request.namespace,
        subresource=request.sub_resource,
        dry_run=bool(request.dry_run),
        user=request.user_info.username,
        client=client,
    )
    problems = list(islice(webhook.handle(admission) or (), _MAX_PROBLEMS))
    if not all(isinstance(problem, FieldProblem) for problem in problems):
        raise TypeError("a handler returns FieldProblems, or None")
    if problems:
        raise Denied("; ".join(map(str, problems)))
    if not webhook.mutating:
        return ReviewAnswer(uid=request.uid, allowed=True)
    patch = list(difference(json.loads(before), encode(given)))
    return ReviewAnswer(uid=request.uid, allowed=True, patch=plain_json(patch, _MAX_BYTES))


def _class_of(webhook: Webhook, found: _ReviewedResource) -> type[Object]:
    """Return the class by the resource: the object of a sub-resource can have another kind."""
    for cls in webhook.kinds:
        own = cls.KIND
        if (own.group, own.version, own.plural) == (found.group, found.version, found.resource):
            return cls
    shown = printable(found.resource)[:63]
    raise DecodeError(f"resource {shown!r} is not declared by this webhook")

"""`admit`: a webhook in a unit test, without an API server, TLS and selectors."""

from typing import TypeVar

from actuator.codec import decode, encode, plain_json
from actuator.interface import Client
from actuator.meta import Object
from generic.library.webhooks import AdmissionRequest, Denied, Webhook
from generic.testing.recording import MAX_BODY, RecordingClient

K = TypeVar("K", bound=Object)


def admit(webhook: Webhook, obj: K, old: K | None = None, *, client: Client | None = None) -> K:
    """Return the object as the API server would store it after the webhook.

    `old` is the stored object if `obj` is an update; the handler reads from `client`. Raises Denied
    if the webhook refuses the object, TypeError for a kind that it does not declare or a value that
    is no JSON, and DecodeError for one that does not fit its field.
    """
    cls = type(obj)
    if cls not in webhook.kinds:
        raise TypeError(f"webhook {webhook.name} has no {cls.__name__}; add the class to its kinds")
    request = AdmissionRequest(
        operation="CREATE" if old is None else "UPDATE",
        new=_received(obj),
        old=None if old is None else _received(old),
        namespace=obj.metadata.namespace,
        subresource=webhook.subresource,
        client=client or RecordingClient(),
    )
    if request.operation not in webhook.operations or obj.metadata.deletion_timestamp is not None:
        return obj
    if problems := [str(problem) for problem in webhook.handle(request) or ()]:
        raise Denied("; ".join(problems))
    return _received(request.new) if webhook.mutating else obj


def _received(obj: K) -> K:
    """Return the object as a server reads it: Python's enums and tuples are texts and lists."""
    return decode(type(obj), plain_json(encode(obj), MAX_BODY))

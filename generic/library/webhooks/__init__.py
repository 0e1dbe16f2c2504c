"""Admission webhooks: declarations, handlers and their helpers.

An author declares a `Webhook`, usually with `mutates` or `validates`, and passes it to
`Manager.add_webhook`. Start reading at `webhook` (the declaration and the request that a handler
receives), then `review` (one AdmissionReview from bytes to bytes).

Not here: the server, its certificates and the configurations in the API server
(`generic.manager`).
"""

from generic.library.webhooks.webhook import (
    READ_CLUSTER,
    AdmissionRequest,
    Denied,
    Target,
    Webhook,
    mutates,
    validates,
)

__all__ = [
    "READ_CLUSTER",
    "AdmissionRequest",
    "Denied",
    "Target",
    "Webhook",
    "mutates",
    "validates",
]

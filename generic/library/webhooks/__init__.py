"""Admission webhooks: declarations, handlers and their helpers.

An author declares a `Webhook`, usually with `mutates` or `validates`, and passes it to
`Manager.add_webhook`. Start reading at `webhook` (the declaration and the request that a handler
receives), then `review` (one AdmissionReview from bytes to bytes).

Not here: the server, its certificates and the configurations in the API server
(`generic.manager`).
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)

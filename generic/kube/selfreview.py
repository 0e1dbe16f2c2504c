"""The user of a client, as the API server knows them (SelfSubjectReview)."""

from actuator.interface import Client, Resource
from actuator.meta import value_at

_REVIEWS = Resource("authentication.k8s.io/v1", "selfsubjectreviews", namespaced=False)


def user_name(client: Client) -> str:
    """Return the name of the user. Raises ApiError."""
    review = {"apiVersion": _REVIEWS.api_version, "kind": "SelfSubjectReview", "metadata": {}}
    return str(value_at(client.create(_REVIEWS, review), "status", "userInfo", "username"))

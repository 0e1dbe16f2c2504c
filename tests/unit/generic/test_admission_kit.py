"""`admit` runs a webhook as an API server does, without one."""

import pytest

from actuator import ObjectMeta
from actuator.codec import encode
from actuator.interface import FieldProblem
from actuator.v1alpha1 import Infrastructure, Network
from generic.library.webhooks import AdmissionRequest, Denied, mutates, validates
from generic.testing.admission import admit
from generic.testing.recording import RecordingClient


@mutates(Network, failure_policy="Fail")
def mark(request: AdmissionRequest[Network]) -> None:
    """Write what the request is."""
    request.new.metadata.labels["seen"] = request.operation


@validates(Network, failure_policy="Fail", operations=["UPDATE"])
def keep_type(request):
    """Refuse another type."""
    request.new.metadata.labels["seen"] = "is not stored"
    if request.old.spec.type != request.new.spec.type:
        yield FieldProblem(field="spec.type", detail="must not change")


def network(**meta) -> Network:
    """Return a Network."""
    return Network(metadata=ObjectMeta(name="a", namespace="shoot--a--b", **meta))


def test_a_mutating_webhook_returns_a_changed_copy():
    given = network()
    assert admit(mark, given).metadata.labels == {"seen": "CREATE"}
    assert admit(mark, given, network()).metadata.labels == {"seen": "UPDATE"}
    assert given.metadata.labels == {}


def test_a_validating_webhook_refuses_and_changes_nothing():
    given, other = network(), network()
    other.spec = type(other.spec)(type="other")
    assert admit(keep_type, given, network()) == network()
    assert admit(keep_type, other) is other  # it declares no CREATE
    with pytest.raises(Denied, match=r"spec\.type: must not change"):
        admit(keep_type, other, given)


def test_an_object_under_deletion_never_reaches_the_handler():
    given = network(deletion_timestamp="2026-01-01T00:00:00Z")
    assert admit(mark, given) is given


def test_a_handler_reads_from_the_given_client():
    @mutates(Network, failure_policy="Ignore", subresource="scale")
    def read(request: AdmissionRequest[Network]) -> None:
        request.new.metadata.labels["type"] = request.cluster().shoot["spec"]["provider"]["type"]
        assert (request.namespace, request.subresource) == ("shoot--a--b", "scale")

    spec = {"shoot": {"spec": {"provider": {"type": "acme"}}}}
    kind = {"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster"}
    cluster = {**kind, "metadata": {"name": "shoot--a--b"}, "spec": spec}
    admitted = admit(read, network(), client=RecordingClient(cluster))
    assert encode(admitted)["metadata"]["labels"] == {"type": "acme"}


def test_a_kind_that_the_webhook_does_not_declare_is_refused():
    with pytest.raises(TypeError, match="webhook mark has no Infrastructure; add the class to"):
        admit(mark, Infrastructure())

"""`admit` runs a webhook as an API server does, without one."""

from contextlib import suppress
from enum import StrEnum
from random import Random
from typing import Any

import attrs
import pytest

from actuator import ObjectMeta, v1alpha1
from actuator.codec import decode, encode, plain_json
from actuator.errors import DecodeError
from actuator.interface import FieldProblem, Resource
from actuator.meta import Base64, Object
from actuator.schema import decodable
from actuator.v1alpha1 import (
    CRIConfig,
    Infrastructure,
    Network,
    OperatingSystemConfig,
    OperatingSystemConfigSpec,
    RegistryHost,
)
from generic.library.webhooks import AdmissionRequest, Denied, mutates, validates
from generic.testing.admission import admit
from generic.testing.recording import RecordingClient
from tests.support.objects.configurations import valid


@mutates(Network, failure_policy="Fail")
def mark(request: AdmissionRequest[Network]) -> None:
    """Write the operation of the request to a label."""
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
    given = network()
    other = network()
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


class Text(str):
    """A text as Python code has it: a StrEnum, a Base64, a string of a library."""

    __slots__ = ()


def pythonic(value):
    """Return a copy with Text for each text, and a tuple for each list with entries."""
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value)) if field.init]
        return attrs.evolve(value, **{name: pythonic(getattr(value, name)) for name in names})
    match value:
        case str():
            return Text(value)
        case list():
            return tuple(map(pythonic, value)) or []
        case dict():
            return {Text(name): pythonic(item) for name, item in value.items()}
    return value


def objects(cls):
    """20 objects that an API server can store, with the fields that are always written."""
    rng = Random(7)
    found: list[Any] = []
    while len(found) < 20:
        with suppress(ValueError):  # an integer of more than 64 bits
            wire = {**valid(decodable(cls), rng), "metadata": {"name": "a"}}
            found.append(decode(cls, encode(decode(cls, plain_json(wire, 2**20)))))
    return found


@pytest.mark.parametrize("cls", v1alpha1.KINDS)
def test_values_of_python_arrive_as_the_json_that_a_client_sends(cls):
    received = []

    @mutates(cls, failure_policy="Fail")
    def remember(request: AdmissionRequest[Object]) -> None:
        received.extend([request.new, request.old])

    for sent in objects(cls):
        assert admit(remember, pythonic(sent), pythonic(sent)) == sent
        assert received[-2:] == [sent, sent]
        assert "Text" not in str([text.__class__ for text in texts(encode(received[-2]))])
    assert len(received) == 40


def texts(value):
    """All texts of a JSON value."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    return [part for item in value for part in texts(item)] if isinstance(value, list) else [value]


class Capability(StrEnum):
    PULL = "pull"


def test_an_error_names_the_value_that_is_wrong_and_no_other():
    wrong: Any = 7
    spec = OperatingSystemConfigSpec(cri_config=CRIConfig(), purpose=wrong)
    osc = OperatingSystemConfig(metadata=ObjectMeta(name="a"), spec=spec)
    webhook = mutates(OperatingSystemConfig, failure_policy="Fail", name="a")(lambda _: None)
    with pytest.raises(DecodeError, match=r"^spec\.\w+: expected a string, got an integer$"):
        admit(webhook, osc)
    wrong = {1}
    spec = attrs.evolve(spec, purpose=wrong)
    with pytest.raises(TypeError, match="set is not JSON serializable"):
        admit(webhook, attrs.evolve(osc, spec=spec))


def test_python_code_may_decode_and_store_its_own_texts():
    host = {"url": Base64("u"), "capabilities": [Capability.PULL]}
    found = decode(RegistryHost, host)
    assert (type(found.url), [type(capability) for capability in found.capabilities]) == (
        str,
        [str],
    )
    with pytest.raises(DecodeError, match=r"^url: expected a string, got set$"):
        decode(RegistryHost, {"url": {1}})
    kind = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
    client = RecordingClient({**kind, "data": {"a": Capability.PULL, "b": ("c",)}})
    stored = client.get(Resource("v1", "configmaps"), "a", "b")["data"]
    assert (type(stored["a"]), stored["b"]) == (str, ["c"])

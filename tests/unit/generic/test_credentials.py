"""`Context.credentials`: texts in a Secret, and every wrong form of it, without a text in it."""

import base64
import traceback

import pytest

from actuator import CredentialsError, ErrorCode, Object, Raw, SecretReference, credentials_of
from actuator.codec import decode
from actuator.errors import ActuatorError, Forbidden
from actuator.v1alpha1 import (
    BackupBucket,
    BackupEntry,
    ControlPlane,
    DNSRecord,
    Extension,
    Infrastructure,
    ObjectReference,
    SelfHostedShootExposure,
    Worker,
)
from generic.library.manifests import manifest
from generic.testing.recording import RecordingContext

MARKER = "planted-value"
REF = SecretReference(name="cloudprovider", namespace="shoot--a--b")
IDENTITY = {"security.gardener.cloud/purpose": "workload-identity-token-requestor"}


def encoded(content):
    return base64.b64encode(content if isinstance(content, bytes) else content.encode()).decode()


def secret(labels=(), **fields):
    return manifest("v1", "Secret", "cloudprovider", "shoot--a--b", dict(labels), **fields)


def holding(content):
    return secret(data={"apiKey": encoded(content)})


NOT_A_TEXT = "data key apiKey: spaces, a newline or control characters"
WRONG_SECRETS = {
    "no Secret": (None, "not found; create it with data key apiKey"),
    "no data": (secret(), "data key apiKey: not found; add it"),
    "data is null": (secret(data=None), "data key apiKey: not found; add it"),
    "another key": (secret(data={"apikey": encoded(MARKER)}), "data key apiKey: not found"),
    "a key that is null": (secret(data={"apiKey": None}), "data key apiKey: not found"),
    "empty": (holding(""), "data key apiKey: empty; set it"),
    "only spaces": (holding(" \n"), "data key apiKey: empty; set it"),
    "plain text": (secret(data={"apiKey": MARKER}), "data key apiKey: no base64"),
    "a part of base64": (secret(data={"apiKey": encoded(MARKER)[:-1]}), "no base64"),
    "letters of other alphabets": (secret(data={"apiKey": f"{MARKER}ä"}), "no base64"),
    "not UTF-8": (holding(b"\xff" + MARKER.encode()), "data key apiKey: no UTF-8 text"),
    "UTF-16": (holding(MARKER.encode("utf-16")), "data key apiKey: no UTF-8 text"),
    "a newline at its end": (holding(f"{MARKER}\n"), NOT_A_TEXT),
    "a newline of Windows": (holding(f"{MARKER}\r\n"), NOT_A_TEXT),
    "a space before it": (holding(f" {MARKER}"), NOT_A_TEXT),
    "a tab in it": (holding(f"{MARKER}\tx"), NOT_A_TEXT),
    "a null byte": (holding(f"{MARKER}\0"), NOT_A_TEXT),
    "a byte order mark": (holding(f"\ufeff{MARKER}"), NOT_A_TEXT),
    "a workload identity": (
        secret(IDENTITY, data={"token": encoded(MARKER), "config": encoded("{}")}),
        "holds the token of a WorkloadIdentity: data key apiKey: not found",
    ),
}
WRONG_REFERENCES = {
    "no namespace": (SecretReference(name="x"), "Secret /x: the reference has no namespace"),
    "no name": (SecretReference(namespace="n"), "Secret n/: the reference has no name"),
    "an ObjectReference to a WorkloadIdentity": (
        ObjectReference(kind="WorkloadIdentity", name="x", namespace="n"),
        "WorkloadIdentity n/x: no Secret, so without data keys; refer to a Secret",
    ),
    "a WorkloadIdentity": (
        decode(
            SecretReference,
            {"apiVersion": "v1", "kind": "WorkloadIdentity", "name": "x", "namespace": "n"},
        ),
        "WorkloadIdentity n/x: no Secret, so without data keys; refer to a Secret",
    ),
}


def refused(ctx, ref, *keys):
    """Return the message; no frame, repr or chained exception has the value, encoded or not."""
    with pytest.raises(ActuatorError) as caught:
        ctx.credentials(ref, *keys)
    assert caught.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    error: BaseException | None = caught.value
    while error is not None:
        text = "".join([repr(error), repr(vars(error)), *traceback.format_exception(error)])
        assert MARKER not in text
        assert encoded(MARKER).rstrip("=") not in text
        assert not isinstance(error, ValueError), "a decoding error holds its input"
        error = error.__context__
    return str(caught.value)


@pytest.mark.parametrize("form", WRONG_SECRETS)
def test_a_wrong_secret_is_named_with_its_key_and_without_its_value(form):
    given, expected = WRONG_SECRETS[form]
    message = refused(RecordingContext(*[given] if given else []), REF, "apiKey")
    assert message.startswith("Secret shoot--a--b/cloudprovider")
    assert expected in message


@pytest.mark.parametrize("form", WRONG_REFERENCES)
def test_a_wrong_reference_is_named_and_costs_no_request(form):
    ref, expected = WRONG_REFERENCES[form]
    ctx = RecordingContext()
    assert expected in refused(ctx, ref, "apiKey")
    assert ctx.steps == []


def test_all_wrong_keys_are_named_at_once():
    ctx = RecordingContext(secret(data={"user": encoded(MARKER), "token": encoded(f"{MARKER}\n")}))
    message = refused(ctx, REF, "user", "apiKey", "token")
    assert "data key user" not in message
    assert "data key apiKey: not found; add it; data key token: spaces" in message


DOCUMENTS = ["key", "a key with spaces", "ключ", '{"a": "b"}\n', "-----BEGIN\nabc\n-----END\n"]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_text_is_returned_as_it_is(text):
    ctx = RecordingContext(holding(text))
    assert ctx.credentials(REF, "apiKey") == text
    assert ctx.steps == ["get secrets shoot--a--b/cloudprovider"]


@pytest.mark.parametrize("kind", ["", "Secret"])
def test_an_object_reference_to_a_secret_is_read(kind):
    ref = ObjectReference(kind=kind, name=REF.name, namespace=REF.namespace)
    assert RecordingContext(holding("key")).credentials(ref, "apiKey") == "key"


OWN = {"name": "own", "namespace": "garden"}
SHOOTS = {"name": REF.name, "namespace": REF.namespace}
WITH_A_REFERENCE = (BackupBucket, BackupEntry, ControlPlane, DNSRecord, Infrastructure, Worker)
REFERENCES: list[tuple[type[Object], Raw, dict[str, str]]] = [
    (cls, {"secretRef": OWN}, OWN) for cls in WITH_A_REFERENCE
]
REFERENCES += [
    (SelfHostedShootExposure, {"credentialsRef": OWN}, OWN),
    (SelfHostedShootExposure, {}, SHOOTS),
    (Extension, {}, SHOOTS),
    (Extension, {"secretRef": OWN}, SHOOTS),
    (Infrastructure, {}, {"name": "", "namespace": ""}),
]


@pytest.mark.parametrize(("cls", "spec", "expected"), REFERENCES)
def test_the_credentials_of_an_object_are_its_own_or_those_of_its_shoot(cls, spec, expected):
    obj = decode(cls, {"metadata": {"name": "a", "namespace": REF.namespace}, "spec": spec})
    ref = credentials_of(obj)
    assert {"name": ref.name, "namespace": ref.namespace} == expected


def test_an_object_stands_for_the_reference_to_its_credentials():
    obj = decode(Infrastructure, {"spec": {"secretRef": SHOOTS}})
    assert RecordingContext(holding("key")).credentials(obj, "apiKey") == "key"
    obj = decode(Infrastructure, {"spec": {}})
    assert "the reference has no name; set it" in refused(RecordingContext(), obj, "apiKey")


def test_refused_credentials_permit_a_force_deletion():
    error = CredentialsError("Acme refuses the credentials")
    assert (str(error), error.codes) == (error.message, (ErrorCode.ERR_INFRA_UNAUTHENTICATED,))
    assert all(code.allows_force_deletion for code in error.codes)


def test_several_texts_cost_one_request():
    ctx = RecordingContext(secret(data={"user": encoded("me"), "apiKey": encoded("key")}))
    user, key = ctx.credentials(REF, "user", "apiKey")
    assert (user, key) == ("me", "key")
    assert ctx.steps == ["get secrets shoot--a--b/cloudprovider"]


def test_a_refusal_of_the_api_server_keeps_its_type():
    ctx = RecordingContext()

    def forbidden(resource, name, namespace):
        raise Forbidden(403, "secrets is forbidden")

    ctx.client = type("Refusing", (), {"get": staticmethod(forbidden)})()
    with pytest.raises(Forbidden):
        ctx.credentials(REF, "apiKey")

"""The Secret of a workload identity: the fields read, and each error in one sentence."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from actuator.errors import ActuatorError, ConfigurationError, ErrorCode, RequeueAfter
from actuator.meta import Base64
from generic.kube.workload_identity import token_expiry
from generic.library.workload_identity import read_workload_identity
from generic.reconciler.known_secrets import SharedSecrets
from tests.support.objects.workload_identities import ROLE, identity_secret, token
from tests.support.pages.documented import run_examples

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SOON = NOW + timedelta(hours=6)
CALL = SimpleNamespace(clock=SimpleNamespace(now=lambda: NOW))
WHERE = "Infrastructure a/b: spec.secretRef: Secret a/cloudprovider"


def role_of(secret):
    found = read_workload_identity(CALL, secret, WHERE)
    assert found is not None
    return found.setting("roleARN")


def test_type_configuration_and_token_are_read():
    text = token(SOON)
    found = read_workload_identity(CALL, identity_secret("a", text), WHERE)
    assert found is not None
    assert (found.provider, found.token, found.expires) == ("aws", text, SOON)
    assert found.setting("roleARN") == f"{ROLE}a"
    assert text not in repr(found)


def test_refreshing_reads_the_secret_again():
    read = [identity_secret("a", token(SOON)), identity_secret("a", "x"), {"metadata": {}}]
    call = SimpleNamespace(clock=CALL.clock, secret=lambda name, namespace: read.pop(0))
    found = read_workload_identity(call, identity_secret("a", token(SOON)), WHERE)
    assert found is not None
    newer = found.refresh()
    assert newer.token != found.token
    with pytest.raises(ActuatorError, match="no JSON Web Token"):
        newer.refresh()
    with pytest.raises(RequeueAfter, match="has other credentials now"):
        newer.refresh()


def test_other_credentials_are_none():
    secret = identity_secret("a", token(SOON))
    for labels in (None, {}, {"security.gardener.cloud/purpose": "other"}):
        meta = {**secret["metadata"], "labels": labels}
        assert read_workload_identity(CALL, {**secret, "metadata": meta}, WHERE) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no token yet"),
        ("planted-secret", "no JSON Web Token"),
        (token(NOW), "it expired at 2026-03-01T00:00:00Z"),
    ],
)
def test_a_token_that_cannot_be_used_is_an_error_that_permits_a_force_deletion(text, problem):
    with pytest.raises(ActuatorError) as caught:
        read_workload_identity(CALL, identity_secret("a", text), WHERE)
    assert caught.value.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)
    assert caught.value.message == (
        f"{WHERE}, data key token: {problem}; "
        "gardenlet writes it, so check its log and the WorkloadIdentity"
    )


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_token_that_is_no_text_is_the_same_error(part):
    parts = token(SOON).encode().split(b".")
    parts[part] += b"\xff"
    secret = identity_secret("a")
    secret["data"]["token"] = Base64.encode_bytes(b".".join(parts))
    with pytest.raises(ActuatorError) as caught:
        read_workload_identity(CALL, secret, WHERE)
    assert caught.value.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)
    assert f"{WHERE}, data key token: no JSON Web Token; gardenlet writes" in caught.value.message


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ([], "no JSON object"),
        ("planted-secret", "no JSON object"),
        ({}, "roleARN is no text"),
        ({"roleARN": 1}, "roleARN is no text"),
        ({"roleARN": ""}, "roleARN is no text"),
    ],
)
def test_a_wrong_configuration_names_the_field_of_the_workload_identity(config, problem):
    secret = identity_secret("a", token(SOON), config)
    with pytest.raises(ConfigurationError) as caught:
        role_of(secret)
    assert f"{WHERE}, data key config: {problem}" in caught.value.message
    assert "spec.targetSystem.providerConfig of the WorkloadIdentity" in caught.value.message
    assert "planted" not in caught.value.message


@pytest.mark.parametrize("config", [None, b"{", b"[" * 5000, b"\xff"])
def test_a_configuration_that_is_no_json_is_the_same_error(config):
    secret = identity_secret("a", token(SOON))
    secret["data"].pop("config")
    if config is not None:
        secret["data"]["config"] = Base64.encode_bytes(config)
    with pytest.raises(ConfigurationError, match="data key config: no JSON object"):
        read_workload_identity(CALL, secret, WHERE)


def payload(text):
    return f"a.{base64.urlsafe_b64encode(text).decode()}.c"


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a.b", "a.%%%.c", "...", payload(b"{}"), payload(b"[1]"), payload(b'"exp"')),
        payload(b'{"exp": null}'),
        payload(b'{"exp": "2026"}'),
        payload(b'{"exp": 1e400}'),
        payload(b'{"exp": -1e300}'),
        payload(b'{"exp": NaN}'),
        payload(b'{"exp": 99999999999999999999999999}'),
        payload(b'{"exp": {"a": 1}}'),
        payload(b"[" * 100_000),
        payload(b"\xff\xfe"),
    ],
)
def test_no_text_of_a_token_is_more_than_an_unknown_expiry(text):
    assert token_expiry(identity_secret("a", text)) is None


def test_the_remembered_token_of_a_secret_is_dropped_when_it_expires():
    secrets = SharedSecrets()
    text = token(SOON)
    lasting = {"metadata": {"name": "b"}, "data": {"a": "b"}}
    known = secrets.share(identity_secret("a", text))
    kept = secrets.share(lasting)
    broken = secrets.share(identity_secret("a", "x"))
    secrets.drop_expired(NOW)
    assert known.read(NOW) is not None
    assert known.read(SOON) is None, "also before the next tick of the watchdog"
    assert broken.read(NOW) is None, "a token whose expiry is unknown is not kept"
    later = secrets.share(identity_secret("a", token(SOON + timedelta(hours=1))))
    secrets.drop_expired(SOON)
    assert known.read(NOW) is None, "the content is gone"
    assert later.read(SOON) is not None
    secrets.drop_expired(SOON + timedelta(days=1))
    assert later.read(NOW) is None
    assert kept.read(SOON + timedelta(days=10_000)) == lasting


def test_a_token_that_a_wrong_clock_dropped_is_kept_when_it_is_read_again():
    secrets = SharedSecrets()
    secret = identity_secret("a", token(SOON))
    of_another = secrets.share(secret)
    secrets.drop_expired(SOON + timedelta(days=2))
    again = secrets.share(secret)
    secrets.drop_expired(NOW)
    assert of_another.read(NOW) is None
    assert again.read(NOW) == secret


def test_the_example_of_the_documentation_runs():
    class Provider:
        def exchange(self, role, text):
            return role, text

    text = token(SOON)
    call = SimpleNamespace(clock=CALL.clock, secret=lambda _, name: identity_secret(name, text))
    open_cloud = run_examples("## Workload identity", "credentials.md")["open_cloud"]
    assert open_cloud(call, "a", Provider()) == (f"{ROLE}a", text)

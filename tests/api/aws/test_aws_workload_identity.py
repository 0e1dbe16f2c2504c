"""Workload identity on (simulated) AWS: a role by STS, renewed in time, never stored."""

from __future__ import annotations

import base64
import gc
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from actuator import ObjectMeta, Resource
from actuator.errors import ActuatorError, ErrorCode
from actuator.v1alpha1 import Extension
from extensions.aws import tags
from extensions.aws.account import read_credentials
from extensions.aws.cloud import GLOBAL, Cloud, Clouds
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.policy import policy
from generic.kube.clock import SystemClock
from generic.library.workload_identity import WorkloadIdentity
from generic.reconciler.orphans import ORPHANS
from generic.serving.logs import TextFormatter, _is_ours_or_important
from tests.support.aws.objects import REGION, Call, infrastructure, provider_config, shoot_cluster
from tests.support.cluster.harness import eventually
from tests.support.objects import builders
from tests.support.objects.configured import Configured
from tests.support.objects.workload_identities import ROLE, identity_secret, token

if TYPE_CHECKING:
    from extensions.aws.simulator import SimulatedAccount

SECRETS = Resource("v1", "secrets")
HOUR = timedelta(hours=1)


class Later(SystemClock):
    """The time of day, moved forward by a test."""

    ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


class Sts:
    """The tokens that STS received, and the credentials returned for them."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.given: list[str] = []
        self.refused: set[str] = set()
        self.ahead = timedelta()


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Sts:
    """Records requests to STS, which moto answers without a look at the token."""
    from moto.core.exceptions import ServiceException
    from moto.sts.responses import TokenResponse

    class Refused(ServiceException):
        code = "InvalidIdentityToken"
        message = "The token is not valid"

    seen = Sts()
    answer = TokenResponse.assume_role_with_web_identity

    def assume(self: Any) -> Any:
        seen.tokens.append(self._get_param("WebIdentityToken"))
        if seen.tokens[-1] in seen.refused:
            raise Refused
        found = answer(self)
        assert isinstance(found.result, dict)
        role = found.result["Credentials"]
        role.expiration += seen.ahead
        seen.given += (role.secret_access_key, role.session_token)
        return found

    monkeypatch.setattr(TokenResponse, "assume_role_with_web_identity", assume)
    return seen


@pytest.fixture
def role(account: SimulatedAccount, namespace: str) -> Iterator[None]:
    """A role of the namespace's name, with the extension's policy."""
    iam = account.service("iam", GLOBAL)
    iam.request("create_role", RoleName=namespace, AssumeRolePolicyDocument="{}")
    iam.request(
        "put_role_policy",
        RoleName=namespace,
        PolicyName="extension",
        PolicyDocument=json.dumps(policy()),
    )
    yield
    iam.request("delete_role_policy", RoleName=namespace, PolicyName="extension")
    iam.request("delete_role", RoleName=namespace)


@pytest.fixture
def text() -> str:
    return token(datetime.now(UTC) + 6 * HOUR)


@pytest.fixture
def identity(admin, namespace: str, role: None, text: str) -> Call:
    """A Context in a namespace whose cloudprovider Secret has a token."""
    admin.create(SECRETS, identity_secret(namespace, text))
    return Call(admin, namespace, clock=Later())


def opened(clouds: Clouds, call: Call) -> Cloud:
    obj = Extension(metadata=ObjectMeta(name="b", namespace=call.namespace))
    given = read_credentials(call, obj)
    assert isinstance(given, WorkloadIdentity)
    return clouds.open(given, REGION, call.check)


def renew(admin, namespace: str, text: str) -> None:
    """As gardenlet does."""
    data = {"token": base64.b64encode(text.encode()).decode()}
    admin.patch(SECRETS, "cloudprovider", namespace, {"data": data})


def vpcs(cloud: Cloud, namespace: str) -> int:
    [(key, value)] = tags.mark(namespace).items()
    filters = [{"Name": f"tag:{key}", "Values": [value]}]
    return len(cloud.items("describe_vpcs", "Vpcs", Filters=filters))


def test_a_network_is_made_and_deleted_with_the_role_of_the_token(identity, url, ec2, sts, text):
    actuator = Configured(AwsInfrastructure(url))
    wanted = infrastructure(identity.namespace)
    actuator.reconcile(identity, wanted, shoot_cluster(identity.namespace))
    assert vpcs(ec2, identity.namespace) == 1
    actuator.delete(identity, wanted, shoot_cluster(identity.namespace))
    assert vpcs(ec2, identity.namespace) == 0
    assert sts.tokens == [text] * 2, "one exchange in each call"


def test_a_long_call_reads_the_token_again_before_its_credentials_expire(
    admin, identity, clouds, sts, text
):
    cloud = opened(clouds, identity)
    vpcs(cloud, identity.namespace)
    newer = token(datetime.now(UTC) + 12 * HOUR)
    renew(admin, identity.namespace, newer)
    identity.clock.ahead = timedelta(minutes=45)
    vpcs(cloud, identity.namespace)
    assert sts.tokens == [text]
    identity.clock.ahead = sts.ahead = timedelta(minutes=55)
    for _ in range(3):
        vpcs(cloud, identity.namespace)
    assert sts.tokens == [text, newer]


def test_a_call_stops_before_the_request_to_sts(identity, clouds, sts):
    def stop() -> None:
        raise ActuatorError("stop")

    identity.on_check = stop
    cloud = opened(clouds, identity)
    with pytest.raises(ActuatorError, match="stop"):
        vpcs(cloud, identity.namespace)
    assert sts.tokens == []


def test_a_refused_token_has_gardeners_code(identity, clouds, sts, text):
    sts.refused.add(text)
    with pytest.raises(ActuatorError) as caught:
        vpcs(opened(clouds, identity), identity.namespace)
    assert caught.value.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)
    assert "AWS refused assume_role_with_web_identity: InvalidIdentityToken" in str(caught.value)


def test_the_same_role_with_another_token_is_assumed_anew(admin, identity, clouds, sts, text):
    """A tenant can write the role of another into its configuration, but not get its token."""
    vpcs(opened(clouds, identity), identity.namespace)
    other = token(datetime.now(UTC) + HOUR)
    sts.refused.add(other)
    renew(admin, identity.namespace, other)
    with pytest.raises(ActuatorError, match="InvalidIdentityToken"):
        vpcs(opened(clouds, identity), identity.namespace)
    assert sts.tokens == [text, other]


def test_no_client_remembers_a_token_or_temporary_credentials(identity, url, sts):
    clouds = Clouds(url)
    cloud = opened(clouds, identity)
    vpcs(cloud, identity.namespace)
    assert clouds._client.cache_info().currsize == 1, "the one for STS, without credentials"
    for secret in (*sts.tokens, *sts.given):
        assert secret not in repr(cloud)
    del cloud
    gc.collect()
    known = (item for item in gc.get_objects() if isinstance(item, WorkloadIdentity))
    assert [item for item in known if item.config["roleARN"] == ROLE + identity.namespace] == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"text": ""}, "data key token: no token yet"),
        ({"config": {}}, "data key config: roleARN is no text"),
    ],
)
def test_an_unusable_identity_is_named_with_the_object(admin, namespace, url, given, problem):
    text = token(datetime.now(UTC) + HOUR)
    admin.create(SECRETS, identity_secret(namespace, **({"text": text} | given)))
    with pytest.raises(ActuatorError) as caught:
        Configured(AwsInfrastructure(url)).reconcile(
            Call(admin, namespace), infrastructure(namespace), shoot_cluster(namespace)
        )
    where = f"Infrastructure {namespace}/shoot: spec.secretRef: Secret {namespace}/cloudprovider"
    assert f"{where}, {problem}" in str(caught.value)


def test_nothing_that_is_written_has_the_token_or_its_credentials(
    admin, seed, start, role, namespace, url, sts, text, caplog
):
    caplog.set_level(logging.DEBUG)
    admin.create(SECRETS, identity_secret(namespace, text))
    start(AwsInfrastructure(url))
    manifest = builders.infrastructure(namespace, namespace, provider_config=provider_config())
    reference = {"name": "cloudprovider", "namespace": namespace}
    manifest["spec"] |= {"region": REGION, "secretRef": reference}
    seed.create(manifest)
    eventually(seed.is_ready)
    written = [json.dumps(seed.get())]
    sts.refused.add(text)
    seed.update_cluster(builders.cluster(namespace, force="true"))
    seed.delete()
    eventually(seed.is_gone)
    assert len(sts.given) == 4, "two for the account, two for the network"
    assert f'{ROLE}{namespace}"' not in written[0], (
        "nor the configuration: the nodes' role is another"
    )
    lines = TextFormatter(tracebacks=True, colour=False)
    ours = (
        record for record in caplog.records if not record.name.startswith("moto")
    )  # the simulator
    written += [lines.format(our) for our in ours if _is_ours_or_important(our)]
    written += [json.dumps(admin.list(item)) for item in (ORPHANS, Resource("v1", "events"))]
    for secret in (text, *sts.given):
        for form in (secret, base64.b64encode(secret.encode()).decode().rstrip("=")):
            assert [item for item in written if form in item] == []

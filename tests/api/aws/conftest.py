"""A simulated AWS account for each module of tests."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from actuator.interface import Resource
from extensions.aws.cloud import GLOBAL, Cloud, Clouds, Credentials
from extensions.aws.policy import policy
from tests.support.aws.objects import REGION, Call, secret

if TYPE_CHECKING:
    from extensions.aws.simulator import SimulatedAccount


@pytest.fixture(scope="module")
def simulator() -> Iterator[tuple[str, SimulatedAccount]]:
    """The endpoint and the administrator of a simulated account with IAM enforced."""
    from extensions.aws.simulator import Simulator  # moto: only for those who use it

    running = Simulator()
    account = running.start()
    yield running.url, account
    running.stop()


@pytest.fixture
def account(simulator: tuple[str, SimulatedAccount]) -> SimulatedAccount:
    return simulator[1]


@pytest.fixture
def url(simulator: tuple[str, SimulatedAccount]) -> str:
    return simulator[0]


@pytest.fixture
def ec2(account: SimulatedAccount) -> Cloud:
    """EC2 as administrator."""
    return account.service("ec2", REGION)


@pytest.fixture
def shoot() -> str:
    """A technical ID, and the name of an IAM user."""
    return f"shoot--test--{secrets.token_hex(4)}"


@pytest.fixture
def key(account: SimulatedAccount, shoot: str) -> Credentials:
    """The access key of an IAM user with the extension's policy."""
    return account.create_user(shoot, policy())


@pytest.fixture(scope="module")
def clouds(simulator: tuple[str, SimulatedAccount]) -> Clouds:
    return Clouds(simulator[0])


@pytest.fixture
def cloud(clouds: Clouds, key: Credentials) -> Cloud:
    """EC2 with the extension's rights."""
    return clouds.open(key, REGION, lambda: None)


@pytest.fixture
def s3(account: SimulatedAccount) -> Cloud:
    """S3 as administrator."""
    return account.service("s3", REGION)


@pytest.fixture
def route53(account: SimulatedAccount) -> Cloud:
    """Route 53 as administrator."""
    return account.service("route53", GLOBAL)


@pytest.fixture
def shoot_key(account: SimulatedAccount, namespace: str) -> Credentials:
    """The access key of an IAM user named like the namespace, with the extension's policy."""
    return account.create_user(namespace, policy())


@pytest.fixture
def call(admin, namespace: str, shoot_key: Credentials) -> Call:
    """A Context in a namespace with a cloudprovider Secret."""
    admin.create(Resource("v1", "secrets"), secret(namespace, shoot_key))
    return Call(admin, namespace)

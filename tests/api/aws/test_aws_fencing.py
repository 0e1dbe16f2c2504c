"""No request leaves for the cloud once a call must stop: counted where the cloud receives them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from actuator import Resource
from actuator.errors import LeaseLost
from actuator.v1alpha1 import DNSRecord
from extensions.aws.backupbucket import AwsBackupBucket
from extensions.aws.cloud import Clouds, Credentials
from extensions.aws.dnsrecord import AwsDnsRecord
from extensions.aws.infrastructure import AwsInfrastructure
from extensions.aws.policy import policy
from generic.manager.leaderelection import LEASES
from generic.manager.options import Options
from tests.support.aws.objects import (
    REGION,
    Call,
    backup_bucket,
    dns_record,
    infrastructure,
    provider_config,
    secret,
    shoot_cluster,
)
from tests.support.cluster.harness import eventually
from tests.support.objects import builders
from tests.support.objects.configured import Configured

if TYPE_CHECKING:
    from extensions.aws.simulator import SimulatedAccount
    from tests.support.aws.counting import Counting

SECRETS = Resource("v1", "secrets")
ELSEWHERE = "eu-central-1"


@pytest.fixture(scope="module")
def counting() -> Iterator[tuple[Counting, SimulatedAccount]]:
    from tests.support.aws.counting import Counting  # moto: only for those who use it

    running = Counting()
    account = running.start()
    yield running, account
    running.stop()


@pytest.fixture
def cloud(counting) -> Counting:
    counting[0].arrived = counting[0].hold_at = 0
    counting[0].held.clear()
    counting[0].go.clear()
    return counting[0]


@pytest.fixture
def account(counting) -> SimulatedAccount:
    return counting[1]


@pytest.fixture
def call(admin, namespace, account) -> Call:
    admin.create(SECRETS, secret(namespace, account.create_user(namespace, policy())))
    return Call(admin, namespace)


def after(number: int) -> Callable[[], None]:
    """A check that lets so many steps pass, and no other."""
    left = [number]

    def check() -> None:
        if not left[0]:
            raise LeaseLost("another leads")
        left[0] -= 1

    return check


def record(namespace: str) -> DNSRecord:
    return dns_record(namespace, name=f"api.{namespace}.example.org")


CASES = [
    pytest.param(AwsInfrastructure, infrastructure, id="Infrastructure"),
    pytest.param(AwsBackupBucket, backup_bucket, id="BackupBucket"),
    pytest.param(AwsDnsRecord, record, id="DNSRecord"),
]


@pytest.mark.parametrize(("cls", "make"), CASES)
def test_wherever_the_lease_is_lost_not_one_more_request_arrives(
    cloud, account, call, namespace, cls, make
):
    """Each life is done again and again, cut off one request later each time, to its end."""
    if cls is AwsDnsRecord:
        zone = f"{namespace}.example.org"
        account.service("route53", "us-east-1").request(
            "create_hosted_zone", Name=zone, CallerReference=zone
        )
    actuator = Configured(cls(cloud.url))
    obj = make(namespace)
    cluster = shoot_cluster(namespace)
    for operate in (actuator.reconcile, actuator.delete):
        allowed = 0
        while True:
            cloud.arrived = 0
            call.on_check = after(allowed)
            try:
                operate(call, obj, cluster)
                break
            except LeaseLost:
                assert cloud.arrived == allowed
                allowed += 1
        assert 0 < cloud.arrived <= allowed


class _Regional(ThreadingHTTPServer):
    """An S3 server that keeps the regions of requests."""

    regions: list[str]


class _Elsewhere(BaseHTTPRequestHandler):
    """The answer of S3 to a request in the wrong region: the bucket is elsewhere."""

    server: _Regional

    def do_HEAD(self) -> None:
        signed_for = self.headers["Authorization"].partition("Credential=")[2].split("/")[2]
        self.server.regions.append(signed_for)
        self.send_response(200 if signed_for == ELSEWHERE else 301)
        self.send_header("x-amz-bucket-region", ELSEWHERE)
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        pass


def test_a_request_that_boto3_makes_by_itself_is_checked_too():
    """S3 redirects a request in the wrong region to the right one: botocore follows by itself."""
    with _Regional(("127.0.0.1", 0), _Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        clouds = Clouds(f"http://127.0.0.1:{server.server_port}")
        for allowed, regions in ((1, [REGION]), (9, [REGION, ELSEWHERE])):
            server.regions = []
            bucket = clouds.open(Credentials("a", "b"), REGION, after(allowed), "s3")
            with suppress(LeaseLost):
                bucket.request("head_bucket", Bucket=f"bucket-{allowed}")
            assert server.regions == regions
        server.shutdown()


def test_a_manager_that_loses_the_lease_in_a_request_makes_no_other(
    cloud, call, seed, namespace, start
):
    manager = start(AwsInfrastructure(cloud.url), leader_election=True)
    cloud.hold_at = 3
    manifest = builders.infrastructure(namespace, namespace, provider_config=provider_config())
    reference = {"name": "cloudprovider", "namespace": namespace}
    manifest["spec"] |= {"region": REGION, "secretRef": reference}
    seed.create(manifest)
    assert cloud.held.wait(60)
    taken = {"spec": {"holderIdentity": "another"}}
    seed.client.patch(LEASES, Options().leader_election_id, namespace, taken)
    eventually(lambda: manager._running.lost)
    cloud.go.set()
    [(_, watchdog)] = manager._running.wiring.routes.ours.popitem()[1].controllers
    eventually(lambda: all(track.call is None for track in watchdog.tracks.all()))
    assert cloud.arrived == 3

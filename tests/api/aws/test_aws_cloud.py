"""The layer over boto3: checked, sent once, translated, bounded."""

from __future__ import annotations

import socket
import threading

import pytest

from actuator import ActuatorError, ErrorCode
from actuator.errors import CallAbandoned
from extensions.aws.cloud import GLOBAL, Clouds, Credentials
from extensions.aws.errors import CloudError
from extensions.aws.iam import TRUST
from tests.support.aws.objects import REGION


def nothing() -> None:
    pass


def refused(cloud, operation="describe_vpcs", **parameters) -> CloudError:
    with pytest.raises(CloudError) as error:
        cloud.request(operation, **parameters)
    return error.value


def test_a_revoked_access_key_is_unauthenticated(account, cloud, key, shoot):
    cloud.request("describe_vpcs")
    account.service("iam", GLOBAL).request(
        "delete_access_key", UserName=shoot, AccessKeyId=key.access_key_id
    )
    error = refused(cloud)
    assert (error.code, error.codes) == ("AuthFailure", (ErrorCode.ERR_INFRA_UNAUTHENTICATED,))
    assert str(error).startswith("AWS refused describe_vpcs: AuthFailure: ")


def test_a_wrong_secret_key_is_unauthenticated(url, key):
    wrong = Credentials(key.access_key_id, "wrong")
    error = refused(Clouds(url).open(wrong, REGION, nothing))
    assert error.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)


def test_a_missing_right_is_unauthorized(account, cloud, shoot):
    account.delete_policy(shoot)
    assert refused(cloud).codes == (ErrorCode.ERR_INFRA_UNAUTHORIZED,)


def test_nothing_beyond_the_policy_is_allowed(cloud):
    error = refused(cloud, "create_transit_gateway")
    assert error.codes == (ErrorCode.ERR_INFRA_UNAUTHORIZED,)


def test_no_request_leaves_after_the_call_was_abandoned(account, url, key):
    asked = []

    def check():
        asked.append(1)
        if len(asked) > 1:
            raise CallAbandoned("another call has taken its place")

    cloud = Clouds(url).open(key, REGION, check)
    cloud.request("describe_vpcs")
    with pytest.raises(CallAbandoned):
        cloud.request("create_vpc", CidrBlock="10.0.0.0/16")
    left = account.service("ec2", REGION).items("describe_vpcs", "Vpcs")
    assert [vpc for vpc in left if not vpc["IsDefault"]] == []


@pytest.mark.parametrize(
    ("service", "create", "name", "listing", "key"),
    [
        ("iam", "create_role", "RoleName", "list_roles", "Roles"),
        ("route53", "create_hosted_zone", "Name", "list_hosted_zones", "HostedZones"),
    ],
    ids=["IAM", "Route 53"],
)
def test_a_list_has_all_pages(url, account, service, create, name, listing, key, shoot):
    cloud = account.service(service, GLOBAL)
    more = (
        {"CallerReference": shoot} if service == "route53" else {"AssumeRolePolicyDocument": TRUST}
    )
    before = len(cloud.items(listing, key))
    for number in range(101):  # a page has 100
        cloud.request(create, **{name: f"{shoot}-{number}.test"}, **more)
    assert len(cloud.request(listing)[key]) < 101
    assert len(cloud.items(listing, key)) == before + 101


def test_a_cloud_that_does_not_answer_is_a_retryable_error(key):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        cloud = Clouds(f"http://127.0.0.1:{unused.getsockname()[1]}").open(key, REGION, nothing)
        with pytest.raises(ActuatorError, match="AWS did not answer describe_vpcs") as error:
            cloud.request("describe_vpcs")
    assert error.value.codes == (ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES,)


def test_a_failing_request_is_sent_once(key):
    answered = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    answered.append(1)
                    connection.sendall(
                        b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    )

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        cloud = Clouds(f"http://127.0.0.1:{server.getsockname()[1]}").open(key, REGION, nothing)
        with pytest.raises(ActuatorError):
            cloud.request("describe_vpcs")
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    assert answered == [1]


def test_an_impossible_region_is_a_configuration_problem(key):
    with pytest.raises(ActuatorError, match="region 'not a region'") as error:
        Clouds().open(key, "not a region", nothing)
    assert error.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


def test_an_impossible_parameter_is_a_configuration_problem(cloud):
    with pytest.raises(ActuatorError, match="create_vpc cannot be sent to AWS") as error:
        cloud.request("create_vpc", CidrBlock=10)
    assert error.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


def test_removing_a_missing_resource_is_success(cloud):
    cloud.remove("delete_vpc", VpcId="vpc-00000000000000000")
    cloud.remove("delete_subnet", SubnetId="subnet-00000000000000000")
    cloud.remove("delete_security_group", GroupId="sg-00000000000000000")
    cloud.remove("release_address", AllocationId="eipalloc-00000000000000000")


def test_clients_are_kept_by_account_region_and_service_and_bounded():
    clouds = Clouds("http://127.0.0.1:1")
    one = Credentials("a", "b")
    first = clouds._client(one, REGION, "ec2")
    assert clouds._client(Credentials("a", "b"), REGION, "ec2") is first
    assert clouds._client(one, "us-east-1", "ec2") is not first
    assert clouds._client(Credentials("a", "c"), REGION, "ec2") is not first
    assert clouds._client(one, REGION, "s3") is not first
    for number in range(70):
        clouds._client(Credentials(str(number), ""), REGION, "ec2")
    assert clouds._client.cache_info().currsize == 64
    assert clouds._client(one, REGION, "ec2") is not first


def test_clients_made_by_many_threads_are_one():
    clouds = Clouds("http://127.0.0.1:1")
    made = []
    threads = [
        threading.Thread(
            target=lambda: made.append(
                clouds.open(Credentials("a", "b"), REGION, nothing)._client()
            )
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, made))) == 1


def test_credentials_show_nothing_of_themselves():
    credentials = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI")
    shown = f"{credentials!r} {credentials}"
    assert "AKID" not in shown
    assert "wJal" not in shown

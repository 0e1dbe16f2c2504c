"""AWS's error codes become Gardener's, by code and not by text."""

from __future__ import annotations

import re

import pytest

from actuator import ErrorCode
from extensions.aws.errors import MEANINGS, CloudError, codes_in, meaning

MEANT = {
    "AuthFailure": "ERR_INFRA_UNAUTHENTICATED",
    "InvalidAccessKeyId": "ERR_INFRA_UNAUTHENTICATED",
    "InvalidClientTokenId": "ERR_INFRA_UNAUTHENTICATED",
    "SignatureDoesNotMatch": "ERR_INFRA_UNAUTHENTICATED",
    "UnauthorizedOperation": "ERR_INFRA_UNAUTHORIZED",
    "AccessDenied": "ERR_INFRA_UNAUTHORIZED",
    "RequestLimitExceeded": "ERR_INFRA_RATE_LIMITS_EXCEEDED",
    "Throttling": "ERR_INFRA_RATE_LIMITS_EXCEEDED",
    "VpcLimitExceeded": "ERR_INFRA_QUOTA_EXCEEDED",
    "AddressLimitExceeded": "ERR_INFRA_QUOTA_EXCEEDED",
    "SecurityGroupLimitExceeded": "ERR_INFRA_QUOTA_EXCEEDED",
    "DependencyViolation": "ERR_INFRA_DEPENDENCIES",
    "InsufficientInstanceCapacity": "ERR_INFRA_RESOURCES_DEPLETED",
    "InvalidParameterValue": "ERR_CONFIGURATION_PROBLEM",
    "InvalidSubnet.Conflict": "ERR_CONFIGURATION_PROBLEM",
    "BucketAlreadyExists": "ERR_CONFIGURATION_PROBLEM",
    "BucketNotEmpty": "ERR_INFRA_DEPENDENCIES",
    "InvalidChangeBatch": "ERR_CONFIGURATION_PROBLEM",
    "NoSuchHostedZone": "ERR_CONFIGURATION_PROBLEM",
    "PriorRequestNotComplete": "ERR_INFRA_RATE_LIMITS_EXCEEDED",
    "InvalidToken": "ERR_INFRA_UNAUTHENTICATED",
    "NoSuchBucket": None,
    "InternalError": "ERR_RETRYABLE_INFRA_DEPENDENCIES",
    "ServiceUnavailable": "ERR_RETRYABLE_INFRA_DEPENDENCIES",
    "503": "ERR_RETRYABLE_INFRA_DEPENDENCIES",
    "InvalidVpcID.NotFound": None,
    "NobodyEverHeardOfThis": None,
}


@pytest.mark.parametrize("code", MEANT)
def test_a_code_of_aws_has_its_meaning(code):
    wanted = MEANT[code]
    assert meaning(code) == (ErrorCode(wanted) if wanted else None)


def test_the_text_beside_a_code_decides_nothing():
    error = CloudError("delete_vpc", "Odd", "AuthFailure: UnauthorizedOperation, LimitExceeded")
    assert error.codes == ()


def test_no_code_is_listed_twice():
    assert all(re.fullmatch(r"[A-Z][A-Za-z0-9.]+|5\d\d", code) for code in MEANINGS)
    listed = [code for code in MEANINGS if code.endswith("LimitExceeded")]
    assert listed == ["RequestLimitExceeded"], "quotas are recognised by their ending"


@pytest.mark.parametrize(
    "code",
    [
        "InvalidVpcID.NotFound",
        "InvalidGroup.NotFound",
        "InvalidAllocationID.NotFound",
        "NoSuchBucket",
        "NoSuchHostedZone",
    ],
)
def test_not_found_is_recognised(code):
    assert CloudError("delete", code, "").is_not_found
    assert not CloudError("delete", "DependencyViolation", "NotFound").is_not_found


def test_a_text_stays_the_same_from_answer_to_answer_and_readable():
    texts = {
        str(
            CloudError(
                "x", "UnauthorizedOperation", f"No. Encoded authorization failure message: {n}"
            )
        )
        for n in range(3)
    }
    assert texts == {"AWS refused x: UnauthorizedOperation: No."}
    assert len(str(CloudError("x", "Odd", "y" * 5000))) < 400


SAID = {
    "AuthFailure: AWS was not able to validate the credentials\n\tstatus code: 401": (
        ["ERR_INFRA_UNAUTHENTICATED"]
    ),
    "operation error EC2: RunInstances, https response error StatusCode: 403, api error "
    "UnauthorizedOperation: You are not authorized": ["ERR_INFRA_UNAUTHORIZED"],
    "machine-1: InsufficientInstanceCapacity: none left; machine-2: VcpuLimitExceeded: too many": [
        "ERR_INFRA_RESOURCES_DEPLETED",
        "ERR_INFRA_QUOTA_EXCEEDED",
    ],
    "machine-1: AuthFailure: no; machine-2: AuthFailure: no": ["ERR_INFRA_UNAUTHENTICATED"],
    "EC2ThrottledException: Rate exceeded": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"],
    "InvalidAMIID.NotFound: The image id does not exist": ["ERR_CONFIGURATION_PROBLEM"],
    "the words AuthFailure and Throttling without a colon": [],
    "waited for 500: nothing": [],
}


@pytest.mark.parametrize("text", SAID)
def test_codes_of_aws_are_found_in_the_error_of_a_failed_machine(text):
    assert list(codes_in(text)) == SAID[text]

"""Gardener's error codes for AWS's error codes; selected by code, never by message.

Sources: Amazon EC2 API reference, "Error codes for the Amazon EC2 API"; AWS IAM reference, "Common
errors"; AWS STS API reference, "AssumeRoleWithWebIdentity"; Amazon S3 API reference, "Error
responses"; Amazon Route 53 API reference, "Actions"; Gardener documentation, "Shoot Status", error
codes.
"""

import re
from collections.abc import Iterator, Mapping

from actuator import ActuatorError, ErrorCode

_CODES: Mapping[ErrorCode, str] = {
    ErrorCode.ERR_INFRA_UNAUTHENTICATED: """
        AuthFailure ExpiredToken ExpiredTokenException IDPRejectedClaim IncompleteSignature
        InvalidAccessKeyId InvalidClientTokenId InvalidIdentityToken InvalidSecurityToken
        InvalidToken MissingAuthenticationToken SignatureDoesNotMatch UnrecognizedClientException
    """,
    ErrorCode.ERR_INFRA_UNAUTHORIZED: """
        AccessDenied AccessDeniedException Blocked NotAuthorized OperationNotPermitted
        OptInRequired PendingVerification UnauthorizedOperation
    """,
    ErrorCode.ERR_INFRA_RATE_LIMITS_EXCEEDED: """
        EC2ThrottledException PriorRequestNotComplete RequestLimitExceeded RequestThrottled
        RequestThrottledException SlowDown Throttling ThrottlingException TooManyRequestsException
    """,
    ErrorCode.ERR_INFRA_DEPENDENCIES: """
        BucketNotEmpty DeleteConflict DependencyViolation InvalidGroup.InUse InvalidIPAddress.InUse
        InvalidNetworkInterface.InUse ResourceInUse
    """,
    ErrorCode.ERR_INFRA_RESOURCES_DEPLETED: """
        InsufficientAddressCapacity InsufficientCapacity InsufficientFreeAddressesInSubnet
        InsufficientHostCapacity InsufficientInstanceCapacity
    """,
    ErrorCode.ERR_CONFIGURATION_PROBLEM: """
        BucketAlreadyExists EntityAlreadyExists IllegalLocationConstraintException
        InvalidAMIID.Malformed InvalidKey.Format InvalidKeyPair.Duplicate
        InvalidAMIID.NotFound InvalidAMIID.Unavailable InvalidBucketName InvalidChangeBatch
        InvalidDomainName InvalidInput InvalidLocationConstraint InvalidParameter
        InvalidParameterCombination InvalidParameterValue InvalidSubnet.Conflict
        InvalidSubnet.Range InvalidVpc.Range MissingParameter NoSuchHostedZone
        UnsupportedOperation ValidationError
    """,
    # the numbers are of responses without an AWS code, for example from a proxy
    ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES: """
        IDPCommunicationError IncorrectState InternalError InternalFailure OperationAborted
        RequestTimeout ServiceUnavailable Unavailable 500 502 503 504
    """,
}

_CODE = re.compile(r"\b([A-Z][A-Za-z0-9]+(?:\.[A-Za-z0-9]+)*):")
"""An AWS code, as AWS's SDKs write it into the text of an error."""

_NOT_THERE = (
    "NatGatewayNotFound",
    "NoSuchBucket",
    "NoSuchEntity",
    "NoSuchHostedZone",
    "NoSuchKey",
    "NoSuchTagSet",
)

MEANINGS: Mapping[str, ErrorCode] = {
    code: meaning for meaning, codes in _CODES.items() for code in codes.split()
}


def meaning(code: str) -> ErrorCode | None:
    """Return Gardener's code for a code of AWS, or None if Gardener has none."""
    if code in MEANINGS:
        return MEANINGS[code]
    # VpcLimitExceeded, AddressLimitExceeded, RulesPerSecurityGroupLimitExceeded, ...
    return ErrorCode.ERR_INFRA_QUOTA_EXCEEDED if code.endswith("LimitExceeded") else None


def codes_in(text: str) -> Iterator[ErrorCode]:
    """Return Gardener's codes for the AWS codes in a text of the AWS SDK, such as "AuthFailure: AWS
    was not able to validate the provided access credentials".
    """
    found = map(meaning, _CODE.findall(text))
    return (code for code in dict.fromkeys(found) if code is not None)


class CloudError(ActuatorError):
    """AWS refused a request; `code` is AWS's own."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        known = meaning(code)
        text = f"AWS refused {operation}: {code}: {_stable(message)}"
        super().__init__(text, codes=[known] if known else [])
        self.code = code

    @property
    def is_throttled(self) -> bool:
        """Whether AWS currently throttles the account's requests."""
        return ErrorCode.ERR_INFRA_RATE_LIMITS_EXCEEDED in self.codes

    @property
    def is_not_found(self) -> bool:
        """Whether the requested resource does not exist ("InvalidVpcID.NotFound")."""
        return self.code.endswith(".NotFound") or self.code in _NOT_THERE


def _stable(message: str) -> str:
    """Return AWS's message without parts that differ per response, limited in length."""
    text = message.partition(" Encoded authorization failure message")[0]
    return text if len(text) <= 300 else f"{text[:300]}..."

"""The role of a shoot's nodes and its instance profile, which IAM finds by name.

Names are unique in an account, and each resource has the tags of the others: one without them is
never adopted, because AWS refuses to create a second one of the name.
"""

import json

from actuator import Raw
from extensions.aws.cloud import Cloud
from extensions.aws.ec2 import ResourceType
from extensions.aws.errors import CloudError

ROLE = ResourceType(
    "AWS::IAM::Role", "role", "RoleName", "Role", service="iam", describe="get_role"
)
INSTANCE_PROFILE = ResourceType(
    "AWS::IAM::InstanceProfile",
    "instance-profile",
    "InstanceProfileName",
    "InstanceProfile",
    service="iam",
    describe="get_instance_profile",
)
TYPES = (ROLE, INSTANCE_PROFILE)

TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "ec2.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
)
"""Machines may use the role."""

_REGISTRY = """
    BatchCheckLayerAvailability BatchGetImage DescribeRepositories GetAuthorizationToken
    GetDownloadUrlForLayer GetRepositoryPolicy ListImages
"""


def look(cloud: Cloud, type: ResourceType, name: str) -> list[Raw]:
    """Return the resource with that name, as AWS describes it, or nothing."""
    try:
        answer = cloud.service("iam").request(type.describe, **{type.id_key: name})
    except CloudError as error:
        if error.is_not_found:
            return []
        raise
    return [answer[type.answer_key]]


def node_policy(registry: bool) -> Raw:
    """Return the permissions of nodes; with `registry`, to read the account's image registry.

    Those of Gardener's AWS extension (its documentation, "InfrastructureConfig").
    """
    ecr = [f"ecr:{action}" for action in _REGISTRY.split()]
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": actions, "Resource": ["*"]}
            for actions in (["ec2:DescribeInstances"], ecr)[: 2 if registry else 1]
        ],
    }


def ensure_policy(cloud: Cloud, role: str, policy: Raw) -> None:
    """Give the role the permissions, in a policy with the role's name."""
    iam = cloud.service("iam")
    names = {"RoleName": role, "PolicyName": role}
    try:
        there = iam.request("get_role_policy", **names)["PolicyDocument"]
    except CloudError as error:
        if not error.is_not_found:
            raise
        there = None
    if there != policy:
        iam.request("put_role_policy", **names, PolicyDocument=json.dumps(policy))


def ensure_role(cloud: Cloud, profile: Raw, role: str) -> None:
    """Add the role to the instance profile, as AWS describes it."""
    if not profile.get("Roles"):
        names = {"InstanceProfileName": profile["InstanceProfileName"], "RoleName": role}
        cloud.service("iam").request("add_role_to_instance_profile", **names)


def empty(cloud: Cloud, type: ResourceType, item: Raw) -> None:
    """Remove what prevents the deletion: the policy of a role, the role of an instance profile."""
    iam = cloud.service("iam")
    if type is ROLE and item:
        names = {"RoleName": item["RoleName"], "PolicyName": item["RoleName"]}
        iam.remove("delete_role_policy", **names)
    for role in item.get("Roles") or ():
        names = {type.id_key: item[type.id_key], "RoleName": role["RoleName"]}
        iam.remove("remove_role_from_instance_profile", **names)

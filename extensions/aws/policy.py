"""The least IAM policy with which this extension works; give it to the users of its credentials.

Describe actions cannot be limited to resources (AWS service authorization reference, "Actions,
resources, and condition keys for Amazon EC2"); a landscape may limit the others by tag.
"""

from __future__ import annotations

from actuator.meta import Raw

__all__ = ["ACTIONS", "policy"]

ACTIONS = (
    "ec2:AllocateAddress",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CreateSecurityGroup",
    "ec2:CreateSubnet",
    "ec2:CreateTags",  # AWS asks for it where a create request carries TagSpecifications
    "ec2:CreateVpc",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteSubnet",
    "ec2:DeleteVpc",
    "ec2:DescribeAddresses",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "ec2:ReleaseAddress",
)


def policy() -> Raw:
    """The policy document."""
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": list(ACTIONS), "Resource": "*"}],
    }

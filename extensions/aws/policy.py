"""The minimal IAM policy for this extension; attach it to the users of its credentials.

Describe actions cannot be limited to resources (AWS service authorization reference, "Actions,
resources, and condition keys for Amazon EC2"). A landscape may limit the others: EC2 by tag, S3 by
bucket, Route 53 by hosted zone, and may give each credential only the part of its kinds.
"""

from actuator.meta import Raw

ACTIONS = (
    "ec2:AllocateAddress",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CreateSecurityGroup",
    "ec2:CreateSubnet",
    "ec2:CreateTags",  # required for create requests with TagSpecifications
    "ec2:CreateVpc",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteSubnet",
    "ec2:DeleteVpc",
    "ec2:DescribeAddresses",
    "ec2:DescribeInstances",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "ec2:ReleaseAddress",
    "ec2:RevokeSecurityGroupIngress",
    "ec2:RunInstances",
    "ec2:TerminateInstances",
    "route53:ChangeResourceRecordSets",
    "route53:ListHostedZones",
    "route53:ListResourceRecordSets",
    "s3:CreateBucket",
    "s3:DeleteBucket",
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",  # required to delete a version
    "s3:GetBucketTagging",
    "s3:ListBucketVersions",
    "s3:PutBucketTagging",
)


def policy() -> Raw:
    """Return the policy document."""
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": list(ACTIONS), "Resource": "*"}],
    }

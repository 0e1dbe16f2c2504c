"""The minimal IAM policy for this extension; attach it to the users of its credentials.

Describe actions cannot be limited to resources (AWS service authorization reference, "Actions,
resources, and condition keys for Amazon EC2"). A landscape may limit the others: EC2 by tag, S3 by
bucket, Route 53 by hosted zone, and may give each credential only the part of its kinds.
"""

from actuator import Raw

_ACTIONS = {
    # CreateTags is for create requests with TagSpecifications
    "ec2": """
        AllocateAddress AssociateDhcpOptions AssociateRouteTable AttachInternetGateway
        AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateDhcpOptions
        CreateInternetGateway CreateNatGateway CreateRoute CreateRouteTable CreateSecurityGroup
        CreateSubnet CreateTags CreateVpc DeleteDhcpOptions DeleteInternetGateway DeleteKeyPair
        DeleteNatGateway DeleteRouteTable DeleteSecurityGroup DeleteSubnet DeleteVpc
        DescribeAddresses DescribeDhcpOptions DescribeInstances DescribeInternetGateways
        DescribeKeyPairs DescribeNatGateways DescribeRouteTables DescribeSecurityGroups
        DescribeSubnets DescribeVpcAttribute DescribeVpcs DetachInternetGateway ImportKeyPair
        ModifyVpcAttribute ReleaseAddress ReplaceRoute RevokeSecurityGroupEgress
        RevokeSecurityGroupIngress RunInstances TerminateInstances
    """,
    # PassRole is for the machines, TagRole and TagInstanceProfile are for create requests with tags
    "iam": """
        AddRoleToInstanceProfile CreateInstanceProfile CreateRole DeleteInstanceProfile DeleteRole
        DeleteRolePolicy GetInstanceProfile GetRole GetRolePolicy PassRole PutRolePolicy
        RemoveRoleFromInstanceProfile TagInstanceProfile TagRole
    """,
    "route53": "ChangeResourceRecordSets ListHostedZones ListResourceRecordSets",
    # DeleteObjectVersion is for the deletion of objects, which deletes their versions
    "s3": """
        CreateBucket DeleteBucket DeleteObject DeleteObjectVersion GetBucketTagging
        ListBucketVersions PutBucketTagging
    """,
}
ACTIONS = tuple(
    f"{service}:{action}" for service, actions in _ACTIONS.items() for action in actions.split()
)


def policy() -> Raw:
    """Return the policy document."""
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": list(ACTIONS), "Resource": "*"}],
    }

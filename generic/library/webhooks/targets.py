"""Webhooks for single targets, and the predicates by which a webhook sees only its own shoots."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from actuator.v1alpha1 import Network
from generic.kube.expressions import Expr
from generic.library.webhooks.controlplane import SHOOT_PROVIDER
from generic.library.webhooks.objects import Deployment, PodDNSConfig, Secret, StatefulSet, Workload
from generic.library.webhooks.webhook import (
    READ_CLUSTER,
    AdmissionRequest,
    FailurePolicy,
    Handler,
    Webhook,
    WebhookTarget,
    mutates,
)

NETWORK_PROVIDER = "networking.shoot.gardener.cloud/provider"
EXTENSION = "extensions.gardener.cloud/"
"""Prefix of the label that gardenlet sets on the namespace for each Extension type of a shoot."""
_DOMAIN = "cluster.local"


def of_provider(type: str) -> dict[str, str]:
    """Return the labels of the namespaces of shoots on this provider."""
    return {SHOOT_PROVIDER: type}


def with_extension(type: str) -> dict[str, str]:
    """Return the labels of the namespaces of shoots that have an Extension of this type."""
    return {f"{EXTENSION}{type}": "true"}


def of_type(type: str, *classes: str) -> dict[str, str]:
    """Return the conditions for extension objects of a type, and of these classes (shoot)."""
    spec = Expr("object").optional("spec")
    own_class = spec.optional("class").method("orValue", "shoot")
    return {
        "type": spec.optional("type").method("orValue", "").equals(type).text,
        "class": own_class.relation("in", classes or ["shoot"]).text,
    }


def cloudprovider(
    type: str, handle: Handler[Secret], *, failure_policy: FailurePolicy = "Fail"
) -> Webhook:
    """Return a webhook that changes the Secret cloudprovider of shoots on this provider."""
    return mutates(
        Secret,
        name="cloudprovider",
        failure_policy=failure_policy,
        names=["cloudprovider"],
        namespace_labels=of_provider(type),
        object_labels={"gardener.cloud/purpose": "cloudprovider"},
        permissions=[READ_CLUSTER],
    )(handle)


def network(
    type: str,
    provider: str,
    handle: Handler[Network],
    *,
    failure_policy: FailurePolicy = "Fail",
) -> Webhook:
    """Return a webhook that changes the Networks of this type in shoots on this provider."""
    return mutates(
        Network,
        name="network",
        failure_policy=failure_policy,
        namespace_labels={NETWORK_PROVIDER: type, **of_provider(provider)},
        conditions=of_type(type),
        permissions=[READ_CLUSTER],
    )(handle)


def pod_dns(
    names: Sequence[str],
    nameservers: Callable[[AdmissionRequest[Any]], Sequence[str]],
    *,
    namespace_labels: Mapping[str, str],
    failure_policy: FailurePolicy = "Ignore",
) -> Webhook:
    """Return a webhook that makes the pods of these workloads use other name servers.

    The search domains and `ndots` are those that Kubernetes sets by default.
    """

    @mutates(
        Deployment,
        StatefulSet,
        name="dns-config",
        failure_policy=failure_policy,
        names=names,
        namespace_labels=namespace_labels,
        permissions=[READ_CLUSTER],
    )
    def webhook(request: AdmissionRequest[Workload]) -> None:
        domains = [f"{request.namespace}.svc.{_DOMAIN}", f"svc.{_DOMAIN}", _DOMAIN]
        pod = request.new.pod
        pod.dns_policy = "None"
        pod.dns_config = PodDNSConfig(
            nameservers=list(nameservers(request)),
            searches=domains,
            options=[{"name": "ndots", "value": "5"}],
        )

    return webhook


def in_shoot(webhook: Webhook) -> Webhook:
    """Return the webhook for the API servers of shoots, ignored if it cannot be reached.

    A webhook that fails must not keep a shoot from working (Gardener documentation, "Shoot Resource
    Customization Webhooks"): with the policy Fail, declare it as such.
    """
    return attrs.evolve(webhook, target=WebhookTarget.SHOOT, failure_policy="Ignore")

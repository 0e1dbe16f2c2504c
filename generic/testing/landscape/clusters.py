"""The clusters under a garden and its seeds: the embedded cluster, and how it reaches Services.

Real: etcd, kube-apiserver with its aggregation layer, kube-controller-manager. Faked: the network
of Services and pods. The API server reaches a Service (of an aggregated API, of a webhook) through
the router, by the address of the Service; no packet is routed to that address. As in each embedded
cluster, etcd does not sync to disk, and there are no nodes and no scheduler.

Not here: the router (router.py), and what runs in a cluster (garden.py, seed.py).
"""

import json
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from generic.library.programs.cache import Progress
from generic.testing.envtest.certificates import LocalAuthority
from generic.testing.envtest.environment import Environment
from generic.testing.envtest.servers import CONTROLLER_MANAGER, KillableServer

_AGGREGATOR = "aggregator"


@frozen
class ClusterPlan:
    """How one kind of cluster differs from the embedded cluster."""

    service_range: str
    """The range of the addresses of Services."""
    controllers: Sequence[str]
    """The controllers of kube-controller-manager, besides those of the embedded cluster."""


GARDEN = ClusterPlan(
    "10.9.0.0/24",
    ("clusterrole-aggregation-controller", "serviceaccount-token-controller"),
)
SEED = ClusterPlan(
    "10.2.0.0/22",
    (
        "clusterrole-aggregation-controller",
        "cronjob-controller",
        "daemonset-controller",
        "deployment-controller",
        "endpointslice-controller",
        "job-controller",
        "replicaset-controller",
        "serviceaccount-token-controller",
        "statefulset-controller",
    ),
)


def landscape_cluster(
    plan: ClusterPlan, directory: Path, router: Path, progress: Progress, more: Sequence[str] = ()
) -> Environment:
    """Return a cluster that is not started yet; `more` are flags of its API server.

    Its API server reaches Services through the HTTP CONNECT proxy at the Unix socket `router`. New
    certificates and its configuration are written into `directory`, which must be private and stay
    while the cluster runs.
    """
    directory.mkdir(mode=0o700)
    egress = directory / "egress.json"
    egress.write_text(json.dumps(egress_selection(router)))
    authority, certificate, key = (
        directory / f"front-proxy{end}" for end in ("-ca.crt", ".crt", ".key")
    )
    front_proxy = LocalAuthority.new("front-proxy")
    authority.write_bytes(front_proxy.key_pair.certificate)
    front_proxy.client(_AGGREGATOR, []).save(certificate, key)
    apiserver = [
        f"--service-cluster-ip-range={plan.service_range}",
        f"--egress-selector-config-file={egress}",
        f"--requestheader-client-ca-file={authority}",
        f"--requestheader-allowed-names={_AGGREGATOR}",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={certificate}",
        f"--proxy-client-key-file={key}",
        "--allow-privileged=true",
        *more,
    ]
    controller_manager = [
        f"--controllers={','.join(plan.controllers)}",
        "--service-account-private-key-file=pki/service-accounts.key",
    ]
    flags = {KillableServer.APISERVER: apiserver, CONTROLLER_MANAGER: controller_manager}
    return Environment(progress, flags)


def egress_selection(router: Path) -> dict[str, object]:
    """Return the API server's configuration for connections into the cluster."""
    transport = {"uds": {"udsName": str(router)}}
    connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }

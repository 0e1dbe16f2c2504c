"""The webhooks of gardener-admission-controller: one that authorizes gardenlets, and admission.

Real: the SeedAuthorizer decides on requests that RBAC does not allow; SeedRestriction and its
neighbours admit objects. Faked: the way to the program. The cluster reaches its Service through
the router, so the cluster can start first.

The webhooks for admission are in `manifests/webhooks.yaml`. Not here: the process (garden.py).
Source: Gardener documentation, "Gardener Admission Controller".
"""

import base64
from pathlib import Path

from actuator.meta import Raw
from generic.kube.kubeconfig import write_kubeconfig
from generic.testing.envtest.certificates import save_private
from generic.testing.landscape.gardenobjects import (
    ADMISSION_CONTROLLER,
    GARDEN,
    read_manifests,
    service,
)

ADMISSION_ADDRESS = "10.9.0.11"
"""The address of its Service, chosen so that the router knows it."""
ADMISSION_HOST = f"{ADMISSION_CONTROLLER}.{GARDEN}.svc"


def authorization_flags(directory: Path, proxy: str, ca: bytes) -> list[str]:
    """Return the API server's flags that ask the SeedAuthorizer after RBAC.

    `proxy` is the router's URL with its credential. Answers are not cached, because a new object
    gives its seed permissions at once. While the webhook cannot be reached, requests that RBAC does
    not allow get the status 500.
    """
    file = directory / "authorization.json"
    cluster = {
        "server": f"https://{ADMISSION_HOST}/webhooks/auth/seed",
        "certificate-authority-data": ca,
        "proxy-url": proxy,
    }
    save_private(file, write_kubeconfig(cluster, {}, "seed-authorizer"))
    return [
        "--authorization-mode=Webhook",
        f"--authorization-webhook-config-file={file}",
        "--authorization-webhook-version=v1",
        "--authorization-webhook-cache-authorized-ttl=0s",
        "--authorization-webhook-cache-unauthorized-ttl=0s",
    ]


def admission_registration(ca: bytes) -> list[Raw]:
    """Return the objects that make the cluster call the webhooks."""
    registrations = read_manifests("webhooks")
    for registration in registrations:
        for webhook in registration["webhooks"]:
            webhook["clientConfig"]["caBundle"] = base64.b64encode(ca).decode()
    return [service(ADMISSION_CONTROLLER, GARDEN, ADMISSION_ADDRESS), *registrations]

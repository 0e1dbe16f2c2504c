"""Objects of a garden, as data: those of its operator, and the first ones of a user.

The configurations of its controllers are here too.

Real Gardener: gardener-operator or a chart creates the operator's objects; here we do, and only
those that the components need. Those that are always the same are YAML files in `manifests`.

Not here: webhooks (admission.py), the processes of the garden (garden.py), and anything of a seed
or a cloud.
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from actuator.meta import Raw
from generic.library.manifests import manifest

ADMINISTRATOR = "admin"
"""The user of the administrator's kubeconfig."""
GARDEN = "garden"
"""The namespace of the operator."""
CORE = "core.gardener.cloud/v1beta1"
APISERVER = "gardener-apiserver"
ADMISSION_CONTROLLER = "gardener-admission-controller"
CONTROLLERS = {
    ADMISSION_CONTROLLER: ("AdmissionController", "gardenClientConnection"),
    "gardener-controller-manager": ("ControllerManager", "gardenClientConnection"),
    "gardener-scheduler": ("Scheduler", "clientConnection"),
}
"""The kind of each controller's configuration, and its field for the connection to the garden."""
APISERVER_NAMESPACE = "kube-system"
APISERVER_ADDRESS = "10.9.0.10"
"""The address of gardener-apiserver's Service, chosen so that the router knows it."""
ROLE = "gardener.cloud/role"
"""The label that says what a namespace or a Secret is for."""
ISSUER = "https://issuer.landscape.invalid"
"""The issuer of workload identity tokens; no server answers there."""
API_VERSIONS: Mapping[str, Sequence[str]] = {
    "core.gardener.cloud": ("v1", "v1beta1"),
    "operations.gardener.cloud": ("v1alpha1",),
    "security.gardener.cloud": ("v1alpha1",),
    "seedmanagement.gardener.cloud": ("v1alpha1",),
}
_PROJECT = "project.gardener.cloud/name"
_MANIFESTS = Path(__file__).with_name("manifests")


def read_manifests(name: str) -> Any:
    """Return the content of a file in `manifests`, anew for each caller."""
    return yaml.safe_load((_MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8"))


def api_registration(ca: bytes) -> list[Raw]:
    """Return the objects that make the cluster serve Gardener's APIs.

    The endpoint is never used, because the router leads the Service to a local port; but without
    one the aggregation layer does not try.
    """
    labels = {"kubernetes.io/service-name": APISERVER}
    return [
        service(APISERVER, APISERVER_NAMESPACE, APISERVER_ADDRESS),
        manifest(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            APISERVER,
            APISERVER_NAMESPACE,
            labels,
            addressType="IPv4",
            endpoints=[{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}],
            ports=[{"name": "", "port": 8443, "protocol": "TCP"}],
        ),
        *(
            _api_service(group, version, priority, ca)
            for group, versions in API_VERSIONS.items()
            for priority, version in enumerate(versions, start=1)
        ),
    ]


def bootstrap(version: str) -> list[Raw]:
    """Return the operator's objects for this version of Gardener: namespaces, Project, secrets."""
    password = secrets.token_urlsafe(24)
    digest = base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()  # noqa: S324 - htpasswd
    login = {"username": "admin", "password": password, "auth": f"admin:{{SHA}}{digest}"}
    public = "gardener-system-public"
    info = f"version: {version}\nworkloadIdentityIssuerURL: {ISSUER}\n"
    return [
        namespace(GARDEN, project=GARDEN),
        namespace(public),
        manifest("v1", "ConfigMap", "gardener-info", public, data={"gardenerAPIServer": info}),
        secret(GARDEN, "global-monitoring", login, {ROLE: "global-monitoring"}),
        project(GARDEN, GARDEN),
    ]


def controller_configuration(name: str, kubeconfig: Path, server: Raw) -> Raw:
    """Return the configuration; a controller that serves webhooks elects no leader."""
    kind, connection = CONTROLLERS[name]
    elects: Raw = {} if "webhooks" in server else {"leaderElection": {"leaderElect": False}}
    return {
        "apiVersion": f"{kind.lower()}.config.gardener.cloud/v1alpha1",
        "kind": f"{kind}Configuration",
        connection: {"kubeconfig": str(kubeconfig), "qps": 100, "burst": 130},
        "logLevel": "info",
        "logFormat": "text",
        "server": server,
        **elects,
    }


def project(name: str, namespace: str = "", owner: str = ADMINISTRATOR) -> Raw:
    """Return a Project of a user; Gardener creates its namespace, `garden-NAME` by default."""
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": owner}
    spec = {"namespace": namespace or f"garden-{name}", "owner": user}
    return manifest(CORE, "Project", name, spec=spec)


def cloud_profile(provider: str, versions: Sequence[str], spec: Raw) -> Raw:
    """Return the CloudProfile of a provider, with these versions of Kubernetes.

    `spec` has the provider's part: regions, types of machines and volumes, images.
    """
    kubernetes = {"versions": [{"version": version} for version in versions]}
    content = {"type": provider, "kubernetes": kubernetes, **spec}
    return manifest(CORE, "CloudProfile", provider, spec=content)


def credentials(namespace: str, provider: str, content: Mapping[str, str]) -> list[Raw]:
    """Return the Secret `account` with credentials for a provider, and its CredentialsBinding."""
    name = "account"
    security = "security.gardener.cloud/v1alpha1"
    reference = {"apiVersion": "v1", "kind": "Secret", "name": name, "namespace": namespace}
    label = {f"provider.shoot.gardener.cloud/{provider}": "true"}
    return [
        secret(namespace, name, content, label),
        manifest(
            security,
            "CredentialsBinding",
            name,
            namespace,
            provider={"type": provider},
            credentialsRef=reference,
        ),
    ]


def domains(provider: str, parent: str, credentials: Mapping[str, str]) -> list[Raw]:
    """Return the secrets of the garden's internal and default domain, both below `parent`."""
    return [
        secret(
            GARDEN,
            f"{part}-domain",
            credentials,
            {ROLE: f"{part}-domain"},
            {
                "dns.gardener.cloud/provider": provider,
                "dns.gardener.cloud/domain": f"{part}.{parent}",
            },
        )
        for part in ("internal", "default")
    ]


def service(name: str, namespace: str, address: str) -> Raw:
    """Return a Service for the port of HTTPS."""
    spec = {"clusterIP": address, "ports": [{"port": 443, "targetPort": 8443}]}
    return manifest("v1", "Service", name, namespace, spec=spec)


def namespace(name: str, project: str = "") -> Raw:
    """Return a namespace, with the labels by which a Project may take it."""
    labels = {ROLE: "project", _PROJECT: project} if project else {}
    if name == GARDEN:
        labels["app"] = "gardener"  # some admission webhooks exempt the operator's namespace
    return manifest("v1", "Namespace", name, labels=labels)


def secret(
    namespace: str,
    name: str,
    content: Mapping[str, str],
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> Raw:
    """Return a Secret."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
    made = manifest("v1", "Secret", name, namespace, labels, data=data)
    made["metadata"]["annotations"] = dict(annotations or {})
    return made


def _api_service(group: str, version: str, priority: int, ca: bytes) -> Raw:
    spec = {
        "caBundle": base64.b64encode(ca).decode(),
        "group": group,
        "groupPriorityMinimum": 10000,
        "service": {"name": APISERVER, "namespace": APISERVER_NAMESPACE},
        "version": version,
        "versionPriority": 10 * priority,
    }
    return manifest("apiregistration.k8s.io/v1", "APIService", f"{version}.{group}", spec=spec)

"""Objects of a garden, as data: those of its operator, and the first ones of a user.

The configurations of its controllers are here too.

Real Gardener: gardener-operator or a chart creates the operator's objects; here we do, and only
those that the components need.

Not here: permissions (permissions.py), webhooks (admission.py), the processes of the garden
(garden.py), and anything of a seed or a cloud.
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from actuator.meta import Raw

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


def api_registration(ca: bytes) -> list[Raw]:
    """Return the objects that make the cluster serve Gardener's APIs.

    The endpoint is never used, because the router leads the Service to a local port; but without
    one the aggregation layer does not try.
    """
    meta = {"name": APISERVER, "namespace": APISERVER_NAMESPACE}
    labels = {"kubernetes.io/service-name": APISERVER}
    return [
        service(APISERVER, APISERVER_NAMESPACE, APISERVER_ADDRESS),
        _object(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            {**meta, "labels": labels},
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
        _object(
            "v1",
            "ConfigMap",
            {"name": "gardener-info", "namespace": public},
            data={"gardenerAPIServer": info},
        ),
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
    return _object(CORE, "Project", {"name": name}, spec=spec)


def cloud_profile(provider: str, versions: Sequence[str], spec: Raw) -> Raw:
    """Return the CloudProfile of a provider, with these versions of Kubernetes.

    `spec` has the provider's part: regions, types of machines and volumes, images.
    """
    kubernetes = {"versions": [{"version": version} for version in versions]}
    content = {"type": provider, "kubernetes": kubernetes, **spec}
    return _object(CORE, "CloudProfile", {"name": provider}, spec=content)


def credentials(namespace: str, provider: str, content: Mapping[str, str]) -> list[Raw]:
    """Return the Secret `account` with credentials for a provider, and its CredentialsBinding."""
    name = "account"
    security = "security.gardener.cloud/v1alpha1"
    meta = {"name": name, "namespace": namespace}
    reference = {"apiVersion": "v1", "kind": "Secret", **meta}
    label = {f"provider.shoot.gardener.cloud/{provider}": "true"}
    return [
        secret(namespace, name, content, label),
        _object(
            security,
            "CredentialsBinding",
            meta,
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
    return _object("v1", "Service", {"name": name, "namespace": namespace}, spec=spec)


def namespace(name: str, project: str = "") -> Raw:
    """Return a namespace, with the labels by which a Project may take it."""
    labels = {ROLE: "project", _PROJECT: project} if project else {}
    if name == GARDEN:
        labels["app"] = "gardener"  # some admission webhooks exempt the operator's namespace
    return _object("v1", "Namespace", {"name": name, "labels": labels})


def secret(
    namespace: str,
    name: str,
    content: Mapping[str, str],
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> Raw:
    """Return a Secret."""
    meta = {"name": name, "namespace": namespace, "labels": dict(labels)}
    meta["annotations"] = dict(annotations or {})
    data = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
    return _object("v1", "Secret", meta, data=data)


def _api_service(group: str, version: str, priority: int, ca: bytes) -> Raw:
    spec = {
        "caBundle": base64.b64encode(ca).decode(),
        "group": group,
        "groupPriorityMinimum": 10000,
        "service": {"name": APISERVER, "namespace": APISERVER_NAMESPACE},
        "version": version,
        "versionPriority": 10 * priority,
    }
    meta = {"name": f"{version}.{group}"}
    return _object("apiregistration.k8s.io/v1", "APIService", meta, spec=spec)


def _object(api_version: str, kind: str, metadata: Raw, **content: object) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}

"""CertificateService: certificates for a shoot, requested by an Extension.

In the shoot's namespace of the seed: an Issuer for each account in providerConfig, a custom
resource that another vendor's controller reconciles and cleans up. In the shoot: the objects for
its users, deployed by a ManagedResource. A deletion requests that of both, then waits for both; a
force deletion deletes the Issuers despite the vendor's finalizer.
"""

from actuator import Cluster, Context, Raw, SeedObjects
from actuator.v1alpha1 import Extension
from extensions.certificate.config import CertificateConfig, IssuerConfig
from extensions.certificate.issuers import Issuer
from generic.library import managedresources, manifest, manifest_of, seedobjects

_ISSUERS = SeedObjects(
    Issuer,
    [Issuer.KIND.finalizer],
    label_selector="app.kubernetes.io/managed-by=certificate-service",
)
_RBAC = "rbac.authorization.k8s.io"
_ROLE = "extensions.gardener.cloud:certificate-service"


class CertificateService(managedresources.ManagedResourceActuator[Extension, CertificateConfig]):
    """Issuers in the seed, a ManagedResource for the shoot."""

    finalizer = "extensions.gardener.cloud/certificate-service"
    managed_name = "extension-certificate-service"
    origin = "extension-certificate"
    seed_objects = (_ISSUERS,)
    permissions = (*managedresources.PERMISSIONS, seedobjects.permission(_ISSUERS))

    def objects_in_seed(
        self, ctx: Context[CertificateConfig], obj: Extension, cluster: Cluster
    ) -> dict[SeedObjects, list[Raw]]:
        """Return the configured issuers."""
        return {
            _ISSUERS: [_issuer(issuer, obj.metadata.namespace) for issuer in ctx.config.issuers]
        }

    def manifests(
        self, ctx: Context[CertificateConfig], obj: Extension, cluster: Cluster
    ) -> list[Raw]:
        """Return, for the shoot, the issuers' names and the right to request certificates."""
        names = "".join(f"{issuer.name}\n" for issuer in ctx.config.issuers)
        users = {"kind": "Group", "name": "system:authenticated", "apiGroup": _RBAC}
        verbs = ["get", "list", "watch", "create", "delete"]
        rule = {"apiGroups": [Issuer.KIND.group], "resources": ["certificates"], "verbs": verbs}
        role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _ROLE}
        data = {"issuers": names}
        return [
            manifest("v1", "ConfigMap", "certificate-issuers", "kube-system", data=data),
            manifest(f"{_RBAC}/v1", "ClusterRole", _ROLE, rules=[rule]),
            manifest(f"{_RBAC}/v1", "ClusterRoleBinding", _ROLE, roleRef=role, subjects=[users]),
        ]


def _issuer(config: IssuerConfig, namespace: str) -> Raw:
    spec = {"server": config.server, "email": config.email}
    return manifest_of(Issuer, config.name, namespace, spec=spec)

"""CertificateService: certificates for a shoot, requested by an Extension.

In the shoot's namespace of the seed: an Issuer for each account in providerConfig, a custom
resource that another vendor's controller reconciles and cleans up. In the shoot: the objects for
its users, deployed by a ManagedResource.

Flow of delete: delete the Issuers and the ManagedResource → wait for the Issuers, then for the
ManagedResource. Both deletions are requested first, so neither waits for the other.

A force deletion is the framework's default: it removes the vendor's finalizer and deletes the
Issuers, which `seed_objects` declares. gardenlet removes the ManagedResource, and its objects are
deleted with the shoot (Gardener documentation, "Force Deletion").
"""

from collections.abc import Iterable

from actuator import Actuator, Cluster, Context, SeedObjects
from actuator.meta import Raw
from actuator.provider_config import read_config
from actuator.v1alpha1 import Extension
from extensions.certificate.config import CertificateConfig, IssuerConfig
from extensions.certificate.issuers import ISSUERS, Issuer
from generic.library import managedresources, seedobjects
from generic.library.manifests import manifest, manifest_of

MANAGED_NAME = "extension-certificate-service"
ORIGIN = "extension-certificate"
_ISSUERS = SeedObjects(
    ISSUERS.api_version,
    ISSUERS.plural,
    [Issuer.KIND.finalizer],
    label_selector="app.kubernetes.io/managed-by=certificate-service",
)
_RBAC = "rbac.authorization.k8s.io"
_ROLE = "extensions.gardener.cloud:certificate-service"


class CertificateService(Actuator[Extension]):
    """Issuers in the seed, a ManagedResource for the shoot."""

    finalizer = "extensions.gardener.cloud/certificate-service"
    seed_objects = (_ISSUERS,)
    provider_config = CertificateConfig
    permissions = (*managedresources.PERMISSIONS, seedobjects.permission(_ISSUERS))

    def reconcile(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Ensure that exactly the configured issuers exist, and list them in the shoot."""
        client, namespace = ctx.client, obj.metadata.namespace
        issuers = read_config(CertificateConfig, obj).issuers
        for issuer in issuers:
            spec = {"server": issuer.server, "email": issuer.email}
            wanted = manifest_of(Issuer, issuer.name, namespace, spec=spec)
            seedobjects.ensure(client, _ISSUERS, wanted)
        names = {issuer.name for issuer in issuers}
        seedobjects.delete(client, self.seed_objects, namespace, but=names)
        managedresources.deploy_for_shoot(
            client, namespace, MANAGED_NAME, _manifests(issuers), origin=ORIGIN
        )

    def delete(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Delete all objects, in seed and shoot."""
        client, namespace = ctx.client, obj.metadata.namespace
        seedobjects.delete(client, self.seed_objects, namespace)
        managedresources.delete(client, namespace, MANAGED_NAME, origin=ORIGIN)
        seedobjects.check_deleted(ctx, self.seed_objects, namespace)
        managedresources.check_deleted(client, ctx.clock, namespace, MANAGED_NAME, origin=ORIGIN)

    def migrate(self, ctx: Context, obj: Extension, cluster: Cluster) -> None:
        """Delete all objects in this seed; keep those in the shoot."""
        managedresources.set_keep_objects(
            ctx.client, obj.metadata.namespace, MANAGED_NAME, keep=True, origin=ORIGIN
        )
        self.delete(ctx, obj, cluster)


def _manifests(issuers: Iterable[IssuerConfig]) -> list[Raw]:
    """Return, for the shoot, the issuers' names and the right to request certificates."""
    names = "".join(f"{issuer.name}\n" for issuer in issuers)
    users = {"kind": "Group", "name": "system:authenticated", "apiGroup": _RBAC}
    verbs = ["get", "list", "watch", "create", "delete"]
    group = "certificates.example.org"
    rule = {"apiGroups": [group], "resources": ["certificates"], "verbs": verbs}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _ROLE}
    version = f"{_RBAC}/v1"
    return [
        manifest("v1", "ConfigMap", "certificate-issuers", "kube-system", data={"issuers": names}),
        manifest(version, "ClusterRole", _ROLE, rules=[rule]),
        manifest(version, "ClusterRoleBinding", _ROLE, roleRef=role, subjects=[users]),
    ]

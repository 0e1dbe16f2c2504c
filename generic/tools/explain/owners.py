"""The owners of finalizers: a table of names, and a guess from the name.

Sources: Kubernetes documentation, "Finalizers", "Garbage Collection", "Persistent Volumes";
Gardener documentation, "Extension contract", "gardener-resource-manager", "etcd";
machine-controller-manager documentation, "FAQ".
"""

from collections.abc import Mapping, Sequence

import attrs

from actuator.meta import GROUP, Kind
from actuator.v1alpha1 import KINDS, Extension
from generic.tools.explain.facts import FinalizerHolder

_OWNERS: Mapping[str, str] = {
    "batch.kubernetes.io/job-tracking": "the Job controller of Kubernetes",
    "druid.gardener.cloud/etcd-druid": "etcd-druid",
    "external-provisioner.volume.kubernetes.io/finalizer": "the CSI provisioner",
    "foregroundDeletion": "the garbage collector of Kubernetes: until all dependents are deleted",
    "gardener": "Gardener: gardenlet or gardener-controller-manager",
    "gardener.cloud/reference-protection": "gardener-controller-manager: a Shoot references it",
    "kubernetes.io/pv-protection": "the volume protection of Kubernetes: until no claim uses it",
    "kubernetes.io/pvc-protection": "the volume protection of Kubernetes: until no Pod uses it",
    "machine.sapcloud.io/machine-controller": "the provider's machine controller",
    "machine.sapcloud.io/machine-controller-manager": "machine-controller-manager",
    "orphan": "the garbage collector of Kubernetes: until no dependent has this owner",
    "resources-finalizer.argocd.argoproj.io": "Argo CD",
    "service.kubernetes.io/load-balancer-cleanup": "the cloud controller manager",
}
_FAMILIES: Mapping[str, str] = {
    "azure.remedy.gardener.cloud/": "the Azure remedy controller",
    "dns.gardener.cloud/": "dns-controller-manager",
    "external-attacher/": "the CSI attacher",
    "finalizers.fluxcd.io": "Flux",
    "resources.gardener.cloud/gardener-resource-manager": "gardener-resource-manager",
    "snapshot.storage.kubernetes.io/": "the CSI snapshot controller",
}
"""Owners by the prefix of the finalizer."""
_EXTENSIONS = {cls.KIND.finalizer: f"the extension for {cls.KIND.name}" for cls in KINDS}


def held(finalizers: Sequence[str], kind: Kind) -> tuple[FinalizerHolder, ...]:
    """Return the finalizers of an object of `kind`, each with its owner."""
    return tuple(
        FinalizerHolder(
            finalizer=name, owner=f"ours: the extension that serves this {kind.name}", ours=True
        )
        if name == kind.finalizer
        else FinalizerHolder(finalizer=name, owner=owner(name), ours=False)
        for name in finalizers
    )


def as_found(kind: Kind, finalizers: Sequence[str]) -> Kind:
    """Return the kind with the finalizer that the extension of an object probably uses.

    Each extension has its own finalizer for the kind Extension (`Actuator.finalizer`); the first
    of Gardener's domain is assumed to be it.
    """
    if kind.finalizer in finalizers or kind.name != Extension.KIND.name:
        return kind
    likely = (name for name in finalizers if name.startswith(f"{GROUP}/"))
    return attrs.evolve(kind, finalizer=next(likely, kind.finalizer))


def owner(finalizer: str) -> str:
    """Return the controller that removes a finalizer of others."""
    known = _OWNERS.get(finalizer) or _EXTENSIONS.get(finalizer)
    if known is not None:
        return known
    for beginning, owner in _FAMILIES.items():
        if finalizer.startswith(beginning):
            return owner
    domain, slash, _ = finalizer.partition("/")
    if domain == GROUP:
        return "an extension of Gardener"
    return f"unknown: a controller of {domain}" if slash else "unknown: the name has no domain"

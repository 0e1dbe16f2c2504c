"""Typed objects: models of the package `kubernetes`, and classes of our own kinds.

The package is imported by the author who passes a model, never here: it takes seconds. A model has
the fields that the package knows; to write, apply or patch fields, never the whole model.
"""

import re
import weakref
from typing import Any, TypeVar

from actuator.codec import decode
from actuator.errors import DecodeError
from actuator.interface import Resource, resource_of
from actuator.meta import Object, Raw, plural_of

M = TypeVar("M")

_GROUPS = {
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "certificates.k8s.io": "CertificateSigningRequest",
    "coordination.k8s.io": "Lease",
    "discovery.k8s.io": "EndpointSlice",
    "networking.k8s.io": "Ingress IngressClass NetworkPolicy",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodDisruptionBudget",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": (
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass"
    ),
    "": (
        "ConfigMap Endpoints LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod "
        "ReplicationController ResourceQuota Secret Service ServiceAccount"
    ),
}
"""The kinds of each group that can be read as models (Kubernetes documentation, "API Groups")."""
_GROUP_OF = {kind: group for group, kinds in _GROUPS.items() for kind in kinds.split()}
_CLUSTER_SCOPED = frozenset(
    f"{_GROUPS['admissionregistration.k8s.io']} APIService CSIDriver CSINode "
    "CertificateSigningRequest ClusterRole ClusterRoleBinding CustomResourceDefinition "
    "IngressClass Namespace Node PersistentVolume PriorityClass RuntimeClass StorageClass "
    "VolumeAttachment VolumeAttributesClass".split()
)


def resource_of_class(cls: type) -> Resource:
    """Return the location of the objects of a model. Raises TypeError for another class."""
    if isinstance(cls, type) and issubclass(cls, Object):
        return resource_of(cls.KIND)
    name = getattr(cls, "__name__", repr(cls))
    found = re.fullmatch(r"(V\d+(?:alpha\d+|beta\d+)?)(\w+)", name)
    if found is None or found[2] not in _GROUP_OF or not hasattr(cls, "from_dict"):
        raise TypeError(
            f"{name} is no class of a kind; pass a Resource, a class such as V1Secret, or one of "
            "an own kind"
        )
    version = found[1].lower()
    kind = found[2]
    group = _GROUP_OF[kind]
    api_version = f"{group}/{version}" if group else version
    return Resource(api_version, plural_of(kind), namespaced=kind not in _CLUSTER_SCOPED)


def read_as(cls: type[M], obj: Raw) -> M:
    """Return the object as an instance of `cls`. Raises DecodeError if it does not fit."""
    if issubclass(cls, Object):
        return decode(cls, obj)
    reader: Any = cls
    try:
        model: M = reader.from_dict(obj)
    except ValueError as error:
        meta = obj.get("metadata") or {}
        where = "/".join(filter(None, (meta.get("namespace"), meta.get("name"))))
        _, field, problem, *_ = (*str(error).splitlines(), "", "")
        raise DecodeError(f"{cls.__name__} {where}: {field}: {problem.strip()}") from error
    if type(obj) is not dict:  # of a tenant: its memory counts as long as the model exists
        weakref.finalize(model, id, obj).atexit = False
    return model

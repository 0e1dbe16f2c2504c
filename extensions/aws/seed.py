"""The objects of a control plane in the shoot's namespace of the seed: made, applied, removed.

All carry LABEL; what has one of their names without it is somebody else's and is not touched.
"""

from __future__ import annotations

import json

from actuator import ActuatorError, Client, ErrorCode, Resource
from actuator.codec import decode
from actuator.errors import AlreadyExists, DecodeError, NotFound
from actuator.meta import Raw
from actuator.v1alpha1 import ControlPlane
from extensions.aws.config import ControlPlaneConfig
from extensions.aws.status import InfrastructureStatus
from generic.library.controlplane import checksum_of

CLOUD_CONTROLLER_MANAGER = "cloud-controller-manager"
CONFIG_MAPS = Resource("v1", "configmaps")
DEPLOYMENTS = Resource("apps/v1", "deployments")
BINDINGS = Resource("elbv2.k8s.aws/v1beta1", "targetgroupbindings")
BINDING_FINALIZER = "elbv2.k8s.aws/resources"
"""The AWS load balancer controller's (its documentation, "TargetGroupBinding")."""

_LABEL = ("aws.provider.extensions.gardener.cloud/part-of", "controlplane")
SELECTOR = "=".join(_LABEL)
"""Finds what this extension made in a shoot's namespace."""


def config_map(control_plane: ControlPlane, config: ControlPlaneConfig) -> Raw:
    """The configuration of the cloud provider. Raises ActuatorError (infrastructure status)."""
    namespace = control_plane.metadata.namespace
    lines = ["[Global]", f"KubernetesClusterTag={namespace}", f"KubernetesClusterID={namespace}"]
    vpc_id = _vpc_id(control_plane)
    if vpc_id:
        lines.append(f"VPC={vpc_id}")
    gates = config.cloud_controller_manager.feature_gates
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": "ConfigMap",
        "metadata": _metadata("cloud-provider-config", namespace),
        "data": {
            "cloudprovider.conf": "\n".join([*lines, ""]),
            "featureGates": json.dumps(gates, sort_keys=True),
        },
    }


def cloud_controller_manager(replicas: int, image: str, configuration: Raw, secret: Raw) -> Raw:
    """A stand-in; its pods' annotations have the names that Gardener's AWS extension uses."""
    name, config = CLOUD_CONTROLLER_MANAGER, configuration["metadata"]
    labels = {"app": "kubernetes", "role": name}
    rolled_by = {
        "checksum/secret-cloudprovider": checksum_of(secret.get("data") or {}),
        f"checksum/configmap-{config['name']}": checksum_of(configuration["data"]),
    }
    pod = {"containers": [{"name": name, "image": image}]}
    template = {"metadata": {"labels": labels, "annotations": rolled_by}, "spec": pod}
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": "Deployment",
        "metadata": _metadata(name, config["namespace"]),
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def binding(control_plane: ControlPlane) -> Raw:
    """The TargetGroupBinding of the shoot's kube-apiserver."""
    namespace = control_plane.metadata.namespace
    return {
        "apiVersion": BINDINGS.api_version,
        "kind": "TargetGroupBinding",
        "metadata": _metadata("kube-apiserver", namespace),
        "spec": {
            "targetGroupName": namespace[:32],  # AWS allows no more
            "targetType": "ip",
            "serviceRef": {"name": "kube-apiserver", "port": 443},
        },
    }


def apply(client: Client, resource: Resource, obj: Raw) -> None:
    """Afterwards the object is as `obj` says. Raises ActuatorError where it is not ours."""
    _refuse_foreign(client, resource, obj)
    client.apply(resource, obj)


def apply_binding(client: Client, obj: Raw) -> None:
    """Afterwards the binding is as `obj` says; its controller's finalizer is set at creation.

    Later applies leave finalizers alone: from then on they are that controller's.
    """
    guarded = {**obj, "metadata": {**obj["metadata"], "finalizers": [BINDING_FINALIZER]}}
    try:
        client.create(BINDINGS, guarded)
    except AlreadyExists:
        apply(client, BINDINGS, obj)


def request_deletion(client: Client, namespace: str) -> None:
    """Asks for the deletion of all that is ours in the namespace, and does not wait."""
    for resource, obj in _ours(client, namespace):
        meta = obj["metadata"]
        if meta.get("deletionTimestamp") is None:
            try:
                client.delete(resource, meta["name"], namespace, uid=meta["uid"])
            except NotFound:
                pass


def still_there(client: Client, namespace: str) -> list[str]:
    """What is ours and still exists, each with what holds it."""
    return [
        _say_what_holds(resource, obj["metadata"]) for resource, obj in _ours(client, namespace)
    ]


def _metadata(name: str, namespace: str) -> Raw:
    return {"name": name, "namespace": namespace, "labels": dict([_LABEL])}


def _vpc_id(control_plane: ControlPlane) -> str:
    """The VPC as the Infrastructure reported it, "" where it did not (yet)."""
    reported = control_plane.spec.infrastructure_provider_status
    try:
        return decode(InfrastructureStatus, reported or {}).vpc.id
    except DecodeError as error:
        raise ActuatorError(
            f"spec.infrastructureProviderStatus is no InfrastructureStatus of AWS: {error}",
            codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
        ) from error


def _refuse_foreign(client: Client, resource: Resource, obj: Raw) -> None:
    meta = obj["metadata"]
    try:
        there = client.get(resource, meta["name"], meta["namespace"])
    except NotFound:
        return
    key, value = _LABEL
    if (there["metadata"].get("labels") or {}).get(key) != value:
        raise ActuatorError(
            f"{resource} {meta['namespace']}/{meta['name']} exists without our label {SELECTOR}; "
            "rename or remove it",
            codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
        )


def _ours(client: Client, namespace: str) -> list[tuple[Resource, Raw]]:
    found: list[tuple[Resource, Raw]] = []
    for resource in (BINDINGS, DEPLOYMENTS, CONFIG_MAPS):
        try:
            objects = client.list(resource, namespace, label_selector=SELECTOR)
        except NotFound:  # the CRD was never installed here
            continue
        found.extend((resource, obj) for obj in objects)
    return found


def _say_what_holds(resource: Resource, meta: Raw) -> str:
    finalizers = meta.get("finalizers") or []
    holders = f"held by {', '.join(finalizers)}" if finalizers else "being deleted"
    return f"{resource} {meta['name']} ({holders})"

"""OperatingSystemConfig: writes the user data into a Secret that gardenlet reads.

`osc-result-<name>` in the object's namespace, key `cloud_config`, owned by the object for garbage
collection; status.cloudConfig names it (Gardener documentation, "OperatingSystemConfig"). A Secret
of that name with another owner is never changed.
"""

from typing import Any

import attrs

from actuator import v1alpha1
from actuator.cluster import Cluster
from actuator.errors import ActuatorError, NotFound
from actuator.interface import SECRETS, Actuator, Context, Provisioned, Result, WrappedActuator
from actuator.meta import Base64, Raw, SecretReference
from actuator.ownership import is_owned_by, owner_permission, with_owner
from generic.kube.patches import add, test

KEY = "cloud_config"


def secret_name(config: "v1alpha1.OperatingSystemConfig") -> str:
    """Return the name of the result Secret: the one in the status, else Gardener's default."""
    known = config.status.cloud_config
    return known.secret_ref.name if known else f"osc-result-{config.metadata.name}"


class WritesUserData(WrappedActuator):
    """Writes the user data of the inner actuator into the Secret."""

    def __init__(self, inner: Actuator[Any]) -> None:
        super().__init__(inner)
        self.permissions = (
            *inner.permissions,
            SECRETS.permission("get", "create", "patch"),
            owner_permission(v1alpha1.OperatingSystemConfig.KIND),
        )

    def reconcile(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """See Actuator."""
        return _publish(ctx, obj, self.inner.reconcile(ctx, obj, cluster))

    def restore(self, ctx: Context, obj: Any, cluster: Cluster, /) -> Result | None:
        """See Actuator."""
        return _publish(ctx, obj, self.inner.restore(ctx, obj, cluster))


def _publish(
    ctx: Context, config: "v1alpha1.OperatingSystemConfig", result: Result | None
) -> Result | None:
    if not isinstance(result, Provisioned) or result.user_data is None:
        return result
    name = secret_name(config)
    namespace = config.metadata.namespace
    data = {KEY: str(Base64.encode_bytes(result.user_data))}
    try:
        secret = ctx.client.get(SECRETS, name, namespace)
    except NotFound:
        meta = {"name": name, "namespace": namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
        ctx.client.create(SECRETS, with_owner(secret, config))
    else:
        _update(ctx, config, secret, data)
    reference = SecretReference(name=name, namespace=namespace)
    before = config.status.cloud_config
    if before is None:
        config.status.cloud_config = v1alpha1.CloudConfig(secret_ref=reference)
    elif before.secret_ref != reference:
        config.status.cloud_config = attrs.evolve(before, secret_ref=reference)
    return result


def _update(ctx: Context, config: "v1alpha1.OperatingSystemConfig", secret: Raw, data: Raw) -> None:
    meta = secret["metadata"]
    if not is_owned_by(secret, config):
        raise ActuatorError(
            f"{config.KIND.name} {config.key}: Secret {meta['namespace']}/{meta['name']} exists "
            "and belongs to another owner; delete it"
        )
    if (secret.get("data") or {}) != data:
        patch = [test("/metadata/uid", meta["uid"]), add("/data", data)]
        ctx.client.patch(SECRETS, meta["name"], meta["namespace"], patch)

"""The user data of a pool's machines."""

from actuator.errors import ConfigurationError
from actuator.interface import SECRETS, Client
from actuator.meta import Base64
from actuator.v1alpha1 import Worker, WorkerPool
from generic.library.lookup import find
from generic.library.worker.poolhash import pool_field


def user_data(client: Client, worker: Worker, pool: WorkerPool) -> bytes:
    """Return the script for new machines from the Secret that `userDataSecretRef` names.

    Raises ConfigurationError if the Secret or its data is missing, and ApiError.
    """
    reference = pool.user_data_secret_ref
    namespace = worker.metadata.namespace
    secret = find(client, SECRETS, reference.name, namespace) or {}
    data = (secret.get("data") or {}).get(reference.key)
    if not data:
        raise ConfigurationError(
            f"{pool_field(worker, pool, 'userDataSecretRef')}: there is no Secret "
            f"{namespace}/{reference.name} with the data key {reference.key}; gardenlet creates "
            "it, so reconcile the Shoot"
        )
    return Base64(data).decode_bytes()

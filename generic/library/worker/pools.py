"""A provider's input for the machines of a pool: the machine image, and the user data.

A CloudProfile maps name, version and architecture of a machine image to the provider's own data,
such as an AMI, by region or for all regions. An operator may remove a version that pools still use,
so `status.providerStatus.machineImages` keeps the images of all pools (Gardener's extensions,
`UpdateMachineImagesStatus`). Versions with `capabilityFlavors` are not read. Container images are
in `generic.library.imagevector`.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import attrs

from actuator.cluster import Cluster
from actuator.codec import decode_at, encode
from actuator.errors import ConfigurationError
from actuator.interface import SECRETS, Client
from actuator.meta import Base64, KeepsUnknownFields, Raw
from actuator.v1alpha1 import Worker, WorkerPool
from generic.library.lookup import find
from generic.library.worker.group import AMD64
from generic.library.worker.poolhash import pool_field


@attrs.frozen(kw_only=True)
class ProviderImage:
    """A machine image; a provider's subclass adds the fields of its CloudProfile, such as `ami`."""

    name: str
    version: str
    architecture: str = AMD64


@attrs.frozen(kw_only=True)
class _Region(KeepsUnknownFields):
    name: str


@attrs.frozen(kw_only=True)
class _Version(KeepsUnknownFields):
    version: str
    regions: list[_Region] | None = None


@attrs.frozen(kw_only=True)
class _Image:
    name: str
    versions: list[_Version] = attrs.field(factory=list)


T = TypeVar("T", bound=ProviderImage)


def machine_images(cls: type[T], cluster: Cluster, region: str) -> list[T]:
    """Return the CloudProfile's images in a region. Raises ConfigurationError."""
    where = f"Cluster {cluster.metadata.name}: spec.cloudProfile.spec.providerConfig.machineImages"
    given = cluster.provider_profile.get("machineImages") or ()
    images = (decode_at(_Image, one, where) for one in given)
    return [decode_at(cls, one, where) for one in _entries(images, region)]


def use_images(
    cls: type[T], worker: Worker, pools: Iterable[WorkerPool], cluster: Cluster, api_version: str
) -> list[T]:
    """Return the image of each pool: the CloudProfile's, else the one that the status keeps.

    The status then keeps these images, in place of former ones and beside other fields;
    `api_version` is that of the provider's types. Raises ConfigurationError with the pool's field.
    """
    where = f"Worker {worker.key}: status.providerStatus.machineImages"
    status = worker.status.provider_status or {}
    kept = [decode_at(cls, one, where) for one in status.get("machineImages") or ()]
    known = [*machine_images(cls, cluster, worker.spec.region), *kept]
    found = [_find(known, worker, pool) for pool in pools]
    images = [encode(image) for image in dict.fromkeys(found)]
    head = {"apiVersion": api_version, "kind": "WorkerStatus"}
    worker.status.provider_status = {**head, **status, "machineImages": images}
    return found


def user_data(client: Client, worker: Worker, pool: WorkerPool) -> bytes:
    """Return the script for new machines from the Secret that `userDataSecretRef` names.

    Raises ConfigurationError if the Secret or its data is missing, and ApiError.
    """
    reference, namespace = pool.user_data_secret_ref, worker.metadata.namespace
    secret = find(client, SECRETS, reference.name, namespace) or {}
    data = (secret.get("data") or {}).get(reference.key)
    if not data:
        raise ConfigurationError(
            f"{pool_field(worker, pool, 'userDataSecretRef')}: there is no Secret "
            f"{namespace}/{reference.name} with the data key {reference.key}; gardenlet creates "
            "it, so reconcile the Shoot"
        )
    return Base64(data).decode_bytes()


def _find(images: Iterable[T], worker: Worker, pool: WorkerPool) -> T:
    field, wanted = pool_field(worker, pool, "machineImage"), pool.machine_image
    if wanted is None:
        raise ConfigurationError(f"{field}: expected an image, got none; set it in the Shoot")
    key = (wanted.name, wanted.version, pool.architecture or AMD64)
    for image in images:
        if (image.name, image.version, image.architecture) == key:
            return image
    raise ConfigurationError(
        f"{field}: {' '.join(key)} in {worker.spec.region} is neither in the CloudProfile nor in "
        "status.providerStatus; add it to spec.providerConfig.machineImages of the CloudProfile, "
        "or choose another image"
    )


def _entries(images: Iterable[_Image], region: str) -> Iterator[Raw]:
    for image in images:
        for one in image.versions:
            fields = [there.extra for there in one.regions or () if there.name == region]
            for extra in [one.extra] if one.regions is None else fields:
                yield {**extra, "name": image.name, "version": one.version}

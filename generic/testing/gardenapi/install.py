"""Brings the garden's types and their labels into a cluster."""

import json
import time

from actuator.errors import ApiError, ConfigurationError, NotFound
from actuator.interface import resource_of
from actuator.meta import Object, Raw
from generic.kube.client import HttpClient, path_of
from generic.library.manifests import manifest_of
from generic.testing.gardenapi.kinds import GARDEN_KINDS, garden_crds
from generic.testing.gardenapi.labels import NO_PARENT, PROVIDER, label_policies
from generic.testing.seed import install_crds

_SECONDS = 60.0


def install_garden(client: HttpClient) -> None:
    """Serve the garden's types, with the labels of extensions, once this returns.

    Raises ApiError, and ConfigurationError for an API server that cannot set labels.
    """
    install_crds(client, garden_crds())
    for resource, item in label_policies():
        try:
            client.apply(resource, item)
        except NotFound as error:
            why = f"the API server has no {resource.plural}"
            raise ConfigurationError(f"{why}; use Kubernetes 1.36 or later") from error
    deadline = time.monotonic() + _SECONDS
    for cls, fields in GARDEN_KINDS.items():
        while not _is_labelled(client, cls, fields):
            if time.monotonic() > deadline:
                raise ApiError(0, f"{cls.KIND.name}: the API server sets no labels")
            time.sleep(0.1)


def _is_labelled(client: HttpClient, cls: type[Object], fields: Raw) -> bool:
    """Whether a new object would get its label: the API server learns of policies later."""
    namespace = "default" if cls.KIND.namespaced else ""
    wanted = manifest_of(cls, "probe", namespace, **fields)
    path = path_of(resource_of(cls.KIND), namespace)
    body = json.dumps(wanted).encode()
    try:
        made = json.loads(client.send("POST", path, query={"dryRun": "All"}, body=body))
    except ApiError as error:
        return NO_PARENT in str(error)
    return f"{PROVIDER}probe" in made["metadata"].get("labels", {})

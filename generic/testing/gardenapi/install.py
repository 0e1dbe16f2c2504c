"""Brings the garden's types and their labels into a cluster."""

import json
import time
from pathlib import Path

import yaml

from actuator.errors import ApiError, ConfigurationError, Invalid, NotFound
from actuator.interface import resource_of
from actuator.meta import Object, Raw
from generic.kube.client import HttpClient, path_of
from generic.library.manifests import manifest_of
from generic.library.webhooks.garden import provider_label
from generic.testing.garden import resource_of_manifest
from generic.testing.gardenapi.kinds import GARDEN_KINDS, garden_crds
from generic.testing.seed import install_crds

_SECONDS = 60.0
_LABELS = Path(__file__).with_name("labels.yaml")


def install_garden(client: HttpClient) -> None:
    """Serve the garden's types, with the labels of extensions, once this returns.

    Raises ApiError, and ConfigurationError for an API server that cannot set labels.
    """
    install_crds(client, garden_crds())
    for policy in yaml.safe_load(_LABELS.read_text(encoding="utf-8")):
        resource = resource_of_manifest(policy)
        try:
            client.apply(resource, policy)
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
        made: Raw = json.loads(client.send("POST", path, query={"dryRun": "All"}, body=body))
    except Invalid:  # a NamespacedCloudProfile without a label
        return True
    except ApiError:
        return False
    labels: dict[str, str] = made["metadata"].get("labels", {})
    return provider_label("probe").items() <= labels.items()

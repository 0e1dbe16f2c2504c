"""The objects that gardenlet creates in a seed for a shoot, made from the files in `example`."""

from pathlib import Path

import yaml

from actuator.meta import Base64, Raw
from extensions.aws.account import ACCESS_KEY_ID, CLOUD_PROVIDER, SECRET_ACCESS_KEY
from extensions.aws.cloud import Credentials
from generic.testing.rehearsal import RehearsedShoot

_SHOOT = "shoot--foobar--crazy-botany"
"""The technical ID in the examples."""


def example(name: str, shoot: RehearsedShoot, credentials: Credentials) -> list[Raw]:
    """Return the objects of `example/<name>.yaml` for the shoot, with these credentials."""
    path = Path(__file__).parent / "example" / f"{name}.yaml"
    text = path.read_text(encoding="utf-8").replace(_SHOOT, shoot.technical_id)
    keys = {
        ACCESS_KEY_ID: Base64.encode_bytes(credentials.access_key_id.encode()),
        SECRET_ACCESS_KEY: Base64.encode_bytes(credentials.secret_access_key.encode()),
    }
    manifests: list[Raw] = list(yaml.safe_load_all(text))
    for manifest in manifests:
        manifest["metadata"]["labels"] = dict(shoot.labels)
        if manifest["metadata"]["name"] == CLOUD_PROVIDER:
            manifest["data"] = keys
        if "spec" in manifest:
            manifest["spec"]["type"] = shoot.type
    return manifests

"""The objects that gardenlet creates in a seed for a shoot, made from the files in `example`."""

from pathlib import Path

from actuator.meta import Base64, Raw
from extensions.aws.account import ACCESS_KEY_ID, CLOUD_PROVIDER, SECRET_ACCESS_KEY
from extensions.aws.cloud import Credentials
from generic.testing.drill.shoots import example_objects
from generic.testing.rehearsal import RehearsedShoot


def example(name: str, shoot: RehearsedShoot, credentials: Credentials) -> list[Raw]:
    """Return the objects of `example/<name>.yaml` for the shoot, with these credentials."""
    keys = {
        ACCESS_KEY_ID: Base64.encode_bytes(credentials.access_key_id.encode()),
        SECRET_ACCESS_KEY: Base64.encode_bytes(credentials.secret_access_key.encode()),
    }
    manifests = example_objects(Path(__file__).parent / "example" / f"{name}.yaml", shoot)
    for manifest in manifests:
        if manifest["metadata"]["name"] == CLOUD_PROVIDER:
            manifest["data"] = keys
    return manifests

"""What a shoot on AWS has in the seed and in the garden, made from the files in `example`."""

from pathlib import Path

import yaml

from actuator import Base64, Raw
from extensions.aws.account import ACCESS_KEY_ID, CLOUD_PROVIDER, SECRET_ACCESS_KEY
from extensions.aws.cloud import Credentials
from generic.testing import RehearsedShoot, ShootPart, example_objects

_EXAMPLES = Path(__file__).parent / "example"


def example(name: str, shoot: RehearsedShoot, credentials: Credentials) -> list[Raw]:
    """Return the objects of `example/<name>.yaml` for the shoot, with these credentials."""
    keys = {name: Base64.encode_bytes(value.encode()) for name, value in _keys(credentials).items()}
    manifests = example_objects(_EXAMPLES / f"{name}.yaml", shoot)
    for manifest in manifests:
        if manifest["metadata"]["name"] == CLOUD_PROVIDER:
            manifest["data"] = keys
    return manifests


def shoot_part(image: str, credentials: Credentials, domain: str, url: str) -> ShootPart:
    """Return what a real Gardener needs, for a simulated AWS with a hosted zone `domain`."""
    text = (_EXAMPLES / "shootpart.yaml").read_text().replace("IMAGE", image)
    return ShootPart(
        extension="extensions.aws:extension",
        environ={"AWS_ENDPOINT_URL": url},
        region="eu-west-1",
        zones=["eu-west-1a"],
        domain=domain,
        credentials=_keys(credentials),
        **yaml.safe_load(text),
    )


def _keys(credentials: Credentials) -> dict[str, str]:
    return {
        ACCESS_KEY_ID: credentials.access_key_id,
        SECRET_ACCESS_KEY: credentials.secret_access_key,
    }

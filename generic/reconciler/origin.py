"""DeletionOrigin: the seed, shoot, account and person that an ended deletion belongs to. Pure.

Every Orphan, event, log line and report of a deletion's outcome has it, so that a record says where
it comes from after the shoot, its namespace and its project are gone. It is never a metric label,
since tenants write parts of it. Not here: when it is read and kept (`origins`).
"""

import re
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import attrs

from actuator.cluster import Cluster
from actuator.interface import Actuator, innermost
from actuator.meta import KeepsUnknownFields, Raw, Schema, conditions_in, value_at

CLOUD_ACCOUNT = "CloudAccount"
"""The type of the condition whose message is the account (`Actuator.cloud_account`)."""
ORIGIN = "actuator.extensions.gardener.cloud/origin"
"""The annotation of an event about a deletion, with the origin as JSON."""
CONFIRMED_BY = "deletion.gardener.cloud/confirmed-by"
"""The annotation of a Shoot with the user who confirmed its deletion; Gardener writes it."""
UNKNOWN_VALUE = "unknown"
"""Replaces a value that could not be read."""
MAX_LENGTH = 253
"""Maximum characters of a value."""

_TECHNICAL_ID = re.compile(r"shoot--(?P<project>[^-].*?)--(?P<shoot>.+)")
"""Gardener documentation, "Shoot namespaces in the seed": shoot--PROJECT--NAME."""


@attrs.frozen(kw_only=True)
class DeletionOrigin(KeepsUnknownFields):
    """The identity of the deletion of one object; each value has at most MAX_LENGTH characters.

    A value is "unknown" if it could not be read, and "" if the object belongs to no shoot, or in a
    record of a version before it was recorded.
    """

    seed_identity: str = ""
    """The identity in the ConfigMap kube-system/cluster-identity of the seed."""
    seed: str = ""
    """The name of the Seed."""
    garden: str = ""
    """The identity of the garden, from the cluster identity of the Shoot."""
    project: str = ""
    shoot: str = ""
    """The name of the Shoot in its project."""
    shoot_uid: str = ""
    region: str = ""
    """The region of the Shoot."""
    credentials: str = ""
    """The reference to the credentials: the CredentialsBinding or SecretBinding of the Shoot, else
    the object's reference, such as "Secret NAMESPACE/NAME"."""
    account: Annotated[str, Schema(immutable="always")] = ""
    """The cloud account, as `Actuator.cloud_account` returned it while the credentials worked."""
    extension_version: str = ""
    """The distribution of the actuator and its version: "NAME VERSION"; if none is installed, those
    of the pyproject.toml beside its module, followed by " (pyproject.toml)"."""
    confirmed_by: str = ""
    """The user who confirmed the deletion of the Shoot, by its annotation."""

    @property
    def fields(self) -> dict[str, str]:
        """The values by name, for log lines and annotations; without empty and unknown ones."""
        found = {field.name: getattr(self, field.name) for field in attrs.fields(DeletionOrigin)}
        return {
            name: value
            for name, value in found.items()
            if isinstance(value, str) and value not in ("", UNKNOWN_VALUE)
        }


def origin_of(
    cluster: Cluster, obj: Raw, *, seed_identity: str, extension_version: str
) -> DeletionOrigin:
    """Return the origin of the object `obj` (JSON), as far as its Cluster and status have it."""
    shoot = cluster.shoot
    named = _TECHNICAL_ID.fullmatch(cluster.technical_id)
    is_of_shoot = bool(shoot or named)

    def of_shoot(*values: object) -> str:
        found = (value for value in values if value and isinstance(value, str))
        return bounded(next(found, "")) if is_of_shoot else ""

    return DeletionOrigin(
        seed_identity=bounded(seed_identity),
        seed=bounded(
            value_at(cluster.seed, "metadata", "name") or value_at(shoot, "spec", "seedName")
        ),
        garden=of_shoot(_garden(cluster)),
        project=of_shoot(named and named["project"], _project(shoot)),
        shoot=of_shoot(value_at(shoot, "metadata", "name"), named and named["shoot"]),
        shoot_uid=of_shoot(value_at(shoot, "metadata", "uid")),
        region=of_shoot(value_at(shoot, "spec", "region")),
        credentials=bounded(_binding(shoot) or _reference(obj)),
        account=account_of(obj),
        extension_version=bounded(extension_version),
        confirmed_by=of_shoot(value_at(shoot, "metadata", "annotations", CONFIRMED_BY)),
    )


def _garden(cluster: Cluster) -> str:
    """Return the end of TECHNICALID-UID-GARDEN (Gardener, `botanist/clusteridentity.go`)."""
    identity = value_at(cluster.shoot, "status", "clusterIdentity")
    for path in (("status", "uid"), ("metadata", "uid")):
        prefix = f"{cluster.technical_id}-{value_at(cluster.shoot, *path)}-"
        if isinstance(identity, str) and identity.startswith(prefix):
            return identity.removeprefix(prefix)
    return ""


def _project(shoot: Raw) -> str:
    """Return the project by its namespace in the garden: garden-PROJECT."""
    namespace = value_at(shoot, "metadata", "namespace")
    return namespace.removeprefix("garden-") if isinstance(namespace, str) else ""


def _binding(shoot: Raw) -> str:
    namespace = value_at(shoot, "metadata", "namespace")
    for kind in ("credentialsBinding", "secretBinding"):
        if name := value_at(shoot, "spec", f"{kind}Name"):
            return f"{kind[0].upper()}{kind[1:]} {namespace}/{name}"
    return ""


def _reference(obj: Raw) -> str:
    spec = obj.get("spec")
    found = value_at(spec, "secretRef") or value_at(spec, "credentialsRef")
    name = value_at(found, "name")
    if not name:
        return ""
    namespace = value_at(found, "namespace") or value_at(obj, "metadata", "namespace")
    return f"{value_at(found, 'kind') or 'Secret'} {namespace}/{name}"


def version_of(actuator: Actuator[Any]) -> str:
    """Return the distribution of the author's actuator and its version: "NAME VERSION", or ""."""
    return version_of_class(type(innermost(actuator)))


def version_of_class(cls: type) -> str:
    """Return the distribution of a class and its version: "NAME VERSION", or ""."""
    return _version_of_package(cls.__module__.partition(".")[0])


@cache
def _version_of_package(package: str) -> str:
    named = package.replace("_", "-")
    with suppress(Exception):  # the files of a distribution may lack anything
        return f"{named} {metadata.version(named)}"
    with suppress(Exception):
        found = metadata.packages_distributions()[package][0]  # reads files of every distribution
        return f"{found} {metadata.version(found)}"
    with suppress(Exception):  # installed as editable, or not installed
        return _version_beside(sys.modules[package])
    return ""


def _version_beside(module: Any) -> str:
    """Return the version in the pyproject.toml beside a module, or one level above ("src").

    The distribution that it names may be installed as editable, without a list of its packages.
    Raises an error if there is none.
    """
    import tomllib

    path = Path(next(iter(getattr(module, "__path__", [module.__file__])))).resolve()
    file = next(filter(Path.is_file, (up / "pyproject.toml" for up in (*path.parents,)[:2])))
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    with suppress(metadata.PackageNotFoundError):
        return f"{project['name']} {metadata.version(project['name'])}"
    return f"{project['name']} {project['version']} (pyproject.toml)"


def account_of(obj: Raw) -> str:
    """Return the cloud account in the status of an object."""
    by_type = conditions_in(value_at(obj, "status"))
    return bounded(value_at(by_type, CLOUD_ACCOUNT, "message"))


def bounded(value: object) -> str:
    """Return a text of at most MAX_LENGTH characters; "unknown" for another or an empty value."""
    return value[:MAX_LENGTH] if isinstance(value, str) and value else UNKNOWN_VALUE

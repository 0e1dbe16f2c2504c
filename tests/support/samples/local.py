"""Requests and observations of the tests of the local sample."""

from __future__ import annotations

from typing import Any

from actuator.meta import Object, Raw
from actuator.v1alpha1 import (
    ContainerRuntime,
    Extension,
    Network,
    OperatingSystemConfig,
    SelfHostedShootExposure,
)
from extensions.local.config import API_VERSION
from extensions.local.outside import Outside
from generic.kube.patches import replace
from tests.support.cluster.harness import Seed, eventually
from tests.support.objects import builders

SPECS: dict[type[Object], Raw] = {
    Network: {"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"},
    ContainerRuntime: {
        "binaryPath": "/var/bin/containerruntimes",
        "workerPool": {"name": "a", "selector": {"matchLabels": {"pool": "a"}}},
    },
    OperatingSystemConfig: {"purpose": "provision"},
    SelfHostedShootExposure: {"port": 443, "endpoints": []},
    Extension: {},
}


def manifest(cls: type[Object], namespace: str, name: str = "x", **spec: Any) -> Raw:
    """An object of one of the kinds; its type is the name of its namespace."""
    return {
        "apiVersion": cls.KIND.api_version,
        "kind": cls.KIND.name,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": namespace, **SPECS[cls], **spec},
    }


def config(kind: str, **fields: Any) -> Raw:
    """A providerConfig of ours."""
    return {"apiVersion": API_VERSION, "kind": kind, **fields}


def change(looking_at: Seed, **spec: Any) -> None:
    """Changes the spec and asks to reconcile, as gardenlet does; waits until that is done."""
    looking_at.patch([replace(f"/spec/{field}", value) for field, value in spec.items()])
    looking_at.ask("reconcile")
    eventually(looking_at.is_ready)


def error(looking_at: Seed) -> Raw:
    """The lastError, once there is one."""
    return eventually(lambda: looking_at.status().get("lastError"))


def assert_configuration_problem(looking_at: Seed, *words: str) -> None:
    """The status names the problem in one sentence, for the user to fix."""
    last_error = error(looking_at)
    assert last_error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert all(word in last_error["description"] for word in words), last_error
    assert "Traceback" not in last_error["description"]
    assert "\n" not in last_error["description"]


def force(looking_at: Seed) -> None:
    """The user confirms force deletion; gardenlet deletes the object."""
    looking_at.update_cluster(builders.cluster(looking_at.namespace, force="true"))
    looking_at.delete()
    eventually(looking_at.is_gone)


def take_away(outside: Outside) -> None:
    """From now on every request to the outside fails at once."""
    outside.directory.rename(outside.directory.with_name("away"))


def bring_back(outside: Outside) -> None:
    """The outside answers again."""
    outside.directory.with_name("away").rename(outside.directory)
